package tools

import "slices"

// Effect is something that a tool does. A tool may have several.
type Effect string

// The effects.
const (
	// Reads returns data from the user or the operator's services, and changes nothing.
	Reads Effect = "reads"
	// Fetches opens an address, such as a web page: the address leaves, and a stranger's text comes back.
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
	// ChangesCredentials changes passwords, or data by which an account identifies its owner.
	ChangesCredentials Effect = "changes-credentials"
	// SignsIn proves the user's identity to a service, or confirms a request with a code.
	SignsIn Effect = "signs-in"
	// Executes runs code.
	Executes Effect = "executes"
	// Writes changes something in a way that no other effect covers.
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

// harmless contains the effects that change nothing.
var harmless = setOf(Reads, Fetches)

// Role says what an argument is for.
type Role string

// The roles. An argument without a role is not understood.
const (
	// Payee receives money; Amount is how much.
	Payee  Role = "payee"
	Amount Role = "amount"
	// Recipient is a person who receives content or access; Audience is a group or a place with readers.
	Recipient Role = "recipient"
	Audience  Role = "audience"
	// Target is the thing on which the tool acts: an ID, a name, a path.
	Target Role = "target"
	// Address is a web address.
	Address Role = "address"
	// Secret is a password or a code.
	Secret Role = "secret"
	// Content is text for people; When is a date or a time.
	Content Role = "content"
	When    Role = "when"
	// Option controls how the tool works, and can do no harm by itself: a flag, a limit, a currency.
	Option Role = "option"
	// Unknown is the role of an argument that is not understood.
	Unknown Role = ""
)

var roles = []Role{Payee, Amount, Recipient, Audience, Target, Address, Secret, Content, When, Option}

// Records is a kind of content in a reading tool's answers.
type Records string

// The kinds of records.
const (
	// Payments are payments in the user's account; Account is its number and balance.
	Payments Records = "payments"
	Account  Records = "account"
	// Profile is the user's own data; Contacts is the user's address book.
	Profile  Records = "profile"
	Contacts Records = "contacts"
	// Mail is received mail, and SentMail is the user's own.
	Mail     Records = "mail"
	SentMail Records = "sent-mail"
	// Events are calendar entries; Files are files and folders; Messages are chat messages; Members are people and
	// groups in a workspace.
	Events   Records = "events"
	Files    Records = "files"
	Messages Records = "messages"
	Members  Records = "members"
	// Directory is data that a service maintains: prices, addresses, products, orders.
	Directory Records = "directory"
	// Clock is the current day or time, or the result of a calculation.
	Clock Records = "clock"
	// Opinions are reviews, ratings and comments; Pages are web pages. Anyone may write them.
	Opinions Records = "opinions"
	Pages    Records = "pages"
)

var records = []Records{Payments, Account, Profile, Contacts, Mail, SentMail, Events, Files, Messages, Members, Directory, Clock, Opinions, Pages}

// AllRecords returns all kinds of records.
func AllRecords() []Records { return slices.Clone(records) }

// Source says where a description comes from.
type Source string

// Sources in order of precedence.
const (
	FromFile        Source = "file"
	FromDeclaration Source = "declaration"
	FromCatalogue   Source = "catalogue"
	FromInference   Source = "inference"
)

// Certainty says how sure a description is.
type Certainty string

// Certainties.
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
