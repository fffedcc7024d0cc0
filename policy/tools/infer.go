package tools

import (
	"maps"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// hint is the information on a tool in the words of a name or description.
type hint struct {
	class  class // empty without a verb
	topics map[topic]int
}

func (h hint) about(list ...topic) bool {
	return slices.ContainsFunc(list, func(t topic) bool { _, ok := h.topics[t]; return ok })
}

// means lists words after which a noun is only the means to the object: find the user by email.
var means = setOfWords("by via through with using for from")

// hintOf reads words. In a name, the verb is first or last; in a sentence, it is first.
func hintOf(words []string, isName bool) hint {
	h := hint{topics: map[topic]int{}}
	skip, verb := false, false
	for i, w := range words {
		if _, ok := verbs[w]; ok && !verb && (i == 0 || filler[words[i-1]]) {
			verb = true
			if !isName || !endsInVerb(words) {
				continue // "transfer the user": the verb is not an object
			}
		}
		if means[w] && i > 0 && (w != "for" || i > 1) { // "search for products"
			skip = true
			continue
		}
		if w == "and" || w == "or" || w == "to" || w == "of" || w == "in" {
			skip = skip && w != "to" && w != "of" && w != "in"
			continue
		}
		isLastVerb := isName && i > 0 && i == len(words)-1 && verbs[w] != "" && verbs[w] != reading && verbs[words[0]] == ""
		if t, ok := nouns[w]; ok && !skip && !isLastVerb {
			if _, again := h.topics[t]; !again {
				h.topics[t] = i
			}
		}
	}
	h.class = verbOf(words, isName)
	return h
}

// endsInVerb reports whether a name that begins with a noun ends in its verb: order_status, contactLookup.
func endsInVerb(words []string) bool {
	last := words[len(words)-1]
	return len(words) > 1 && nouns[words[0]] != "" && verbs[last] != "" && nouns[last] == ""
}

// filler lists words that begin descriptions without meaning.
var filler = setOfWords("use this tool allow let help a an the to that it function you can will utility api for")

func setOfWords(words string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		out[word] = true
	}
	return out
}

// verbOf returns the class of the verb in words: the first verb, or in a name also the last, unless a later word
// changes something ("get_or_create").
func verbOf(words []string, isName bool) class {
	if !isName {
		return firstVerb(words)
	}
	if len(words) == 0 {
		return ""
	}
	first, isVerb := verbs[words[0]]
	if words[0] == "return" && len(words) > 1 {
		first = booking // goods, not values
	}
	if isVerb && !changesAfter(words, first) {
		_, noun := nouns[words[0]]
		last, lastVerb := verbs[words[len(words)-1]]
		if !noun || len(words) == 1 || !lastVerb || nouns[words[len(words)-1]] != "" {
			return first
		}
		return last // payment.schedule.create, order_cancel
	}
	for i, w := range slices.Backward(words) {
		if c, ok := verbs[w]; ok && (i > 0 || !isVerb) && (c != reading || !isVerb) {
			return c
		}
	}
	return first
}

// firstVerb returns the class of the first verb among a sentence's first words. A word that is also a noun, as in
// "your text files", is a verb only at the beginning.
func firstVerb(words []string) class {
	for i, w := range words[:min(len(words), 6)] {
		c, ok := verbs[w]
		if !ok || filler[w] || i > 0 && !filler[words[i-1]] && (nouns[w] != "" || parts[w] != "") {
			continue
		}
		return c
	}
	return ""
}

// changesAfter reports whether a name that begins with a reading verb has a changing verb after "or" or "and".
func changesAfter(words []string, first class) bool {
	for i, w := range words {
		if (w == "or" || w == "and") && i > 0 && i+1 < len(words) {
			if c, ok := verbs[words[i+1]]; ok && c != reading && first == reading {
				return true
			}
		}
	}
	return false
}

// property is an argument's information from the schema.
type property struct {
	name, description, kind, format string
	choices                         bool // the schema lists the allowed values
}

// propertiesOf returns a JSON Schema's arguments, in order.
func propertiesOf(schema string) []property {
	var s struct {
		Properties map[string]struct {
			Description string         `json:"description"`
			Type        any            `json:"type"`
			Format      string         `json:"format"`
			Enum        []any          `json:"enum"`
			AnyOf       []propertyType `json:"anyOf"`
			OneOf       []propertyType `json:"oneOf"`
			Items       *propertyType  `json:"items"`
		} `json:"properties"`
	}
	if schema == "" || strictjson.Unmarshal(schema, &s) != nil {
		return nil
	}
	var out []property
	for name, p := range s.Properties {
		q := property{name: name, description: p.Description, format: p.Format, choices: len(p.Enum) > 0}
		q.kind = typeOf(p.Type)
		for _, alternative := range slices.Concat(p.AnyOf, p.OneOf) {
			if kind := typeOf(alternative.Type); kind != "" && q.kind == "" {
				q.kind, q.format = kind, alternative.Format
				q.choices = q.choices || len(alternative.Enum) > 0
			}
		}
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return out
}

type propertyType struct {
	Type   any    `json:"type"`
	Format string `json:"format"`
	Enum   []any  `json:"enum"`
}

// typeOf returns the first type other than null in a schema's type.
func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		if v != "null" {
			return v
		}
	case []any:
		for _, one := range v {
			if kind, ok := one.(string); ok && kind != "null" {
				return kind
			}
		}
	}
	return ""
}

// infer describes a tool by its name, description and schema.
func infer(spec agent.ToolSpec) *Description {
	d := &Description{Tool: spec.Name, Source: FromInference, Certainty: None}
	words := wordsIn(localName(spec.Name))
	name := hintOf(words, true)
	text := hintOf(wordsIn(mainClause(firstSentence(spec.Description))), false)
	properties := propertiesOf(spec.Parameters)
	if name.class == "" && text.class == "" {
		name.class = classOfNouns(words, spec.Name, properties)
	}
	d.NoArguments = spec.Parameters != "" && len(properties) == 0
	both := hint{topics: map[topic]int{}}
	for _, h := range []hint{text, name} {
		maps.Copy(both.topics, h.topics)
	}
	topicsOfName := name
	if len(name.topics) == 0 {
		topicsOfName = both
	}
	var byName, byText effectSet
	if name.class != "" {
		byName = effectsOf(hint{name.class, topicsOfName.topics}, properties)
	}
	if text.class != "" {
		byText = effectsOf(hint{text.class, both.topics}, properties)
	}
	switch {
	case byName == 0 && byText == 0:
		d.set = effectsOfArguments(properties)
		if d.set != 0 {
			d.Certainty = Likely
		}
	case byName == 0 || byText == 0:
		d.set, d.Certainty = byName|byText, Likely
	default:
		d.set, d.Certainty = byName|byText, Likely
		if byName == byText || byName&byText != 0 {
			d.Certainty = Sure
		}
		if byText&^harmless == 0 != (byName&^harmless == 0) { // one says that the tool only reads, the other that it does not
			d.set = (byName | byText) &^ setOf(Reads)
		}
	}
	if d.set != 0 {
		d.Records = recordsOf(name, text, d.set)
	}
	for _, p := range properties {
		role, certainty := roleOf(p, d.set)
		d.Arguments = append(d.Arguments, Argument{Name: p.name, Role: role, Source: FromInference, Certainty: certainty})
	}
	return d
}

// classOfNouns guesses the class of a tool whose name and description have no verb. A noun for an act stands for the
// act, if the tool has arguments: hotelBooking. A plural stands for a list, if no argument is a person or content:
// workspaceMembers.
func classOfNouns(words []string, name string, properties []property) class {
	if len(words) == 0 {
		return ""
	}
	last := words[len(words)-1]
	if act := acts[last]; act != "" && len(properties) > 0 {
		return act
	}
	asks := func(p property) bool {
		role := strongRole(p)
		return role == Target || role == When || role == Option || role == Audience
	}
	if nouns[last] != "" && acts[last] == "" && strings.HasSuffix(name, "s") && !slices.ContainsFunc(properties, func(p property) bool { return !asks(p) }) {
		return reading
	}
	return ""
}

// effectsOf returns the effects of a verb with its objects.
func effectsOf(h hint, properties []property) effectSet {
	has := func(role Role) bool {
		return slices.ContainsFunc(properties, func(p property) bool { return strongRole(p) == role })
	}
	switch h.class {
	case reading:
		if has(Address) && !h.about(file) || h.about(page) && !h.about(mail, file, chat, event, money, account, profile, service, member) {
			return setOf(Fetches)
		}
		return setOf(Reads)
	case fetching:
		if has(Address) || h.about(page) {
			return setOf(Fetches)
		}
		if h.about(file, mail, chat, event, profile) {
			return setOf(Reads)
		}
		return setOf(Fetches)
	case sending:
		if h.about(money) && (has(Payee) || has(Amount) || len(properties) == 0) {
			return setOf(Pays)
		}
		return setOf(Sends)
	case paying:
		if h.about(money, account) || has(Amount) || has(Payee) || len(properties) == 0 && !h.about(member, profile) {
			return setOf(Pays)
		}
		if h.about(service) {
			return setOf(Books)
		}
		return setOf(Writes)
	case publishing:
		switch {
		case h.about(money) && has(Amount):
			return setOf(Pays)
		case h.about(page) || has(Address):
			return setOf(Publishes)
		case h.about(chat, mail, member):
			return setOf(Sends)
		}
		return setOf(Publishes)
	case granting:
		return setOf(Grants)
	case deleting:
		return setOf(Deletes)
	case booking:
		return setOf(Books)
	case signing:
		return setOf(SignsIn)
	case executing:
		if h.about(money) && (has(Payee) || has(Amount)) {
			return setOf(Pays)
		}
		return setOf(Executes)
	case changing:
		return effectsOfChange(h, has)
	}
	return 0
}

// effectsOfChange returns the effects of a verb that only says that something changes, depending on its object.
func effectsOfChange(h hint, has func(Role) bool) effectSet {
	switch {
	case h.about(credential):
		return setOf(ChangesCredentials)
	case h.about(forwarding):
		return setOf(Grants, Sends)
	case h.about(money) && !h.about(event, file), has(Payee) && has(Amount):
		return setOf(Pays)
	case h.about(permission):
		return setOf(Grants)
	case h.about(event) && h.about(member):
		return setOf(Grants)
	case h.about(event):
		return setOf(Books)
	case h.about(residence) && h.about(member, profile) && !h.about(service):
		return setOf(ChangesCredentials)
	case h.about(member) && !h.about(profile, file, service):
		return setOf(Grants)
	case h.about(service, residence):
		return setOf(Books)
	case h.about(profile, contact):
		return setOf(ChangesCredentials)
	case h.about(chat, mail):
		return setOf(Sends)
	case h.about(page):
		return setOf(Publishes)
	}
	return setOf(Writes)
}

// effectsOfArguments guesses a tool's effects if its name and description say nothing.
func effectsOfArguments(properties []property) effectSet {
	has := func(role Role) bool {
		return slices.ContainsFunc(properties, func(p property) bool { return strongRole(p) == role })
	}
	switch {
	case has(Payee):
		return setOf(Pays)
	case has(Secret):
		return setOf(ChangesCredentials)
	case has(Recipient) && has(Content):
		return setOf(Sends)
	case has(Address):
		return setOf(Fetches, Sends)
	}
	return 0
}

// recordsOf returns a reading tool's records. The words in its name take precedence over its description.
func recordsOf(name, text hint, set effectSet) []Records {
	if set == setOf(Fetches) {
		return []Records{Pages}
	}
	for _, h := range []hint{name, text} {
		both := hint{topics: map[topic]int{}}
		for _, from := range []hint{h, text} {
			maps.Copy(both.topics, from.topics)
		}
		switch {
		case h.about(opinion):
			return []Records{Opinions}
		case h.about(contact) && !h.about(service):
			return []Records{Contacts}
		case h.about(mail) && (both.about(mail) && !text.about(chat) || !h.about(chat)) && (!text.about(chat) || text.about(mail)):
			if name.about(sent) || text.about(sent) {
				return []Records{SentMail}
			}
			return []Records{Mail}
		case h.about(chat) && text.about(mail) && !text.about(chat): // messages are mails
			if text.about(sent) || name.about(sent) {
				return []Records{SentMail}
			}
			return []Records{Mail}
		case h.about(chat):
			return []Records{Messages}
		case h.about(event):
			return []Records{Events}
		case h.about(money) && !h.about(service):
			return []Records{Payments}
		case h.about(file):
			return []Records{Files}
		case h.about(account):
			return []Records{Account}
		case h.about(page):
			return []Records{Pages}
		case h.about(service, residence):
			return []Records{Directory}
		case h.about(profile):
			return []Records{Profile}
		case h.about(member) && text.about(chat):
			return []Records{Messages}
		case h.about(member):
			return []Records{Members}
		case h.about(clock):
			return []Records{Clock}
		}
	}
	return nil
}
