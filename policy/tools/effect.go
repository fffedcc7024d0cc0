package tools

import "slices"

// Effect is something that a tool does. A tool may have several.
type Effect string

// The effects.
const (
	// Reads returns data of the user or of the operator's services, and changes nothing.
	Reads Effect = "reads"
	// Fetches opens an address, such as a page on the web: the address leaves, and a stranger's text comes back.
	Fetches Effect = "fetches"
	// Sends brings content to people: mail, messages, forms.
	Sends Effect = "sends"
	// Pays moves money, or changes an order to move it.
	Pays Effect = "pays"
	// Publishes puts content where anyone may read it.
	Publishes Effect = "publishes"
	// Grants gives people access: members, guests, shares, permissions.
	Grants Effect = "grants"
	// Deletes deletes, cancels or removes something.
	Deletes Effect = "deletes"
	// Books commits the user to something: reservations, orders, events.
	Books Effect = "books"
	// ChangesCredentials changes passwords, and the data by which an account knows its owner.
	ChangesCredentials Effect = "changes-credentials"
	// SignsIn proves the user's identity to a service, or confirms a request with a code.
	SignsIn Effect = "signs-in"
	// Executes runs code.
	Executes Effect = "executes"
	// Writes changes something in a way that no other effect names.
	Writes Effect = "writes"
)

var effects = []Effect{Reads, Fetches, Sends, Pays, Publishes, Grants, Deletes, Books, ChangesCredentials, SignsIn, Executes, Writes}

// effectSet is a set of effects.
type effectSet uint16

func setOf(list ...Effect) (s effectSet) {
	for _, e := range list {
		if i := slices.Index(effects, e); i >= 0 {
			s |= 1 << i
		}
	}
	return s
}

func (s effectSet) list() []Effect {
	var out []Effect
	for i, e := range effects {
		if s&(1<<i) != 0 {
			out = append(out, e)
		}
	}
	return out
}

// harmless are the effects that change nothing.
var harmless = setOf(Reads, Fetches)

// Role is what an argument is for.
type Role string

// The roles. An argument without a role is not understood.
const (
	// Payee receives money; Amount is how much.
	Payee  Role = "payee"
	Amount Role = "amount"
	// Recipient is a person who receives content or access; Audience is a group or a place with readers.
	Recipient Role = "recipient"
	Audience  Role = "audience"
	// Target is the thing on which the tool acts: an id, a name, a path.
	Target Role = "target"
	// Address is a web address.
	Address Role = "address"
	// Secret is a password or a code.
	Secret Role = "secret"
	// Content is text for people; When is a date or a time.
	Content Role = "content"
	When    Role = "when"
	// Option says how the tool works, and can do no harm by itself: a flag, a limit, a currency.
	Option Role = "option"
	// Unknown is the role of an argument that is not understood.
	Unknown Role = ""
)

var roles = []Role{Payee, Amount, Recipient, Audience, Target, Address, Secret, Content, When, Option}

// Records is what the answers of a reading tool consist of.
type Records string

// The kinds of records.
const (
	// Payments are payments of the user's account; Account is its number and balance.
	Payments Records = "payments"
	Account  Records = "account"
	// Profile is the user's own data; Contacts is the user's address book.
	Profile  Records = "profile"
	Contacts Records = "contacts"
	// Mail is received mail, and SentMail is the user's own.
	Mail     Records = "mail"
	SentMail Records = "sent-mail"
	// Events are entries of calendars; Files are files and folders; Messages are messages in chats; Members are people
	// and groups of a workspace.
	Events   Records = "events"
	Files    Records = "files"
	Messages Records = "messages"
	Members  Records = "members"
	// Directory is data that a service maintains: prices, addresses, products, orders.
	Directory Records = "directory"
	// Clock is the current day or time, or the result of a calculation.
	Clock Records = "clock"
	// Opinions are reviews, ratings and comments; Pages are pages of the web. Anyone may write them.
	Opinions Records = "opinions"
	Pages    Records = "pages"
)

var records = []Records{Payments, Account, Profile, Contacts, Mail, SentMail, Events, Files, Messages, Members, Directory, Clock, Opinions, Pages}

// AllRecords returns all kinds of records.
func AllRecords() []Records { return slices.Clone(records) }

// Source is where a description comes from.
type Source string

// The sources, from the one that counts most.
const (
	FromFile        Source = "file"
	FromDeclaration Source = "declaration"
	FromCatalogue   Source = "catalogue"
	FromInference   Source = "inference"
)

// Certainty is how sure a description is.
type Certainty string

// The certainties.
const (
	// Sure: a person wrote it, or all hints agree.
	Sure Certainty = "sure"
	// Likely: one hint says so.
	Likely Certainty = "likely"
	// None: there is no hint.
	None Certainty = "unknown"
)

// Valid reports whether e is one of the effects.
func (e Effect) Valid() bool { return slices.Contains(effects, e) }
