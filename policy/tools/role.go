package tools

import (
	"regexp"
	"strings"
)

// strongRole returns an argument's role if the schema leaves no doubt, whatever the tool does.
func strongRole(p property) Role {
	role, _ := roleOf(p, 0)
	if (role == Recipient || role == Target) && moneyWords(p) {
		return Payee
	}
	return role
}

func moneyWords(p property) bool {
	for _, w := range wordsIn(p.name + " " + p.description) {
		if w == "iban" || w == "payee" || w == "beneficiary" || w == "creditor" {
			return true
		}
	}
	return false
}

// roleOf returns the role of an argument for a tool with these effects, and how sure it is.
func roleOf(p property, set effectSet) (Role, Certainty) {
	byName := roleOfWords(wordsIn(p.name), p, set)
	byText := roleOfText(p, set)
	switch {
	case byName == byText && byName != Unknown:
		return byName, Sure
	case len(p.name) == 1 && byText != Unknown && byText != Target: // x has only its description
		return byText, Likely
	case byName == Unknown && byText == Unknown:
		return roleOfType(p), None
	case byName == Unknown:
		return byText, Likely
	case byText == Unknown:
		return byName, Likely
	}
	if byText == Recipient && (byName == Content || byName == When || byName == Target && isID(wordsIn(p.name))) {
		return byName, Likely
	}
	// The dangerous role wins, so that a rule checks the value.
	for _, role := range []Role{Secret, Payee, Address, Recipient} {
		if byName == role || byText == role {
			return role, Likely
		}
	}
	return byName, Likely
}

// roleOfType returns Option for arguments that can contain neither a name nor text.
func roleOfType(p property) Role {
	if p.kind == "boolean" || p.choices {
		return Option
	}
	switch p.format {
	case "date", "date-time", "time":
		return When
	case "uri", "url", "iri":
		return Address
	case "email":
		return Recipient
	}
	return Unknown
}

var addressWords = regexp.MustCompile(`(?i)\b(e-?mail|iban)\b`)

// roleOfText returns the role that an argument's description suggests. The words before "of" take precedence.
func roleOfText(p property, set effectSet) Role {
	text := firstSentence(p.description)
	if text == "" {
		return Unknown
	}
	head := headOf(text)
	words := wordsIn(head)
	if len(words) > 8 {
		words = words[:8]
	}
	role := roleOfWords(words, p, set)
	if role == Target || role == Unknown || role == Content && p.kind == "array" {
		// "The name of the user", "List of recipients": the words after "of" say more.
		rest := wordsIn(strings.TrimPrefix(text, head))
		if len(rest) > 8 {
			rest = rest[:8]
		}
		for _, w := range rest {
			if r := parts[w]; isParty(w, r) && (role != Unknown && set&setOf(Grants, Sends, Pays) != 0 || addressWords.MatchString(w)) {
				return promote(r, set)
			}
		}
		if role == Unknown && len(rest) > 0 {
			// "List of product IDs to check out": the next noun takes precedence.
			if _, object, ok := strings.Cut(strings.TrimPrefix(text, head), " of "); ok {
				role = roleOfWords(wordsIn(headOf(object)), p, set)
			}
			if role == Unknown {
				role = roleOfWords(rest, p, set)
			}
		}
	}
	return role
}

// headOf returns the beginning of a description, before its details.
func headOf(text string) string {
	for _, divider := range []string{" of ", " to ", " for ", " in ", " that ", " where ", " which ", " from ", ",", "(", " at ", " on ", " by "} {
		if i := strings.Index(text, divider); i > 0 {
			text = text[:i]
		}
	}
	return text
}

// notParties lists words that stand for parties only in names.
var notParties = setOfWords("to who host")

// isParty reports whether a word in a description stands for a person, an account or an address.
func isParty(w string, role Role) bool {
	return !notParties[w] && (role == Recipient || role == Payee || role == Address)
}

// promote turns recipients of money into payees.
func promote(role Role, set effectSet) Role {
	if role == Recipient && set&setOf(Pays) != 0 {
		return Payee
	}
	return role
}

// isID reports whether a name ends in "id": event_id.
func isID(words []string) bool { return len(words) > 1 && words[len(words)-1] == "id" }

// roleOfWords returns the role that words suggest. The last word with a role wins, as in "recipient email".
// Exceptions: words for secrets, payees and addresses always win, and the ID of a thing is a target.
func roleOfWords(words []string, p property, set effectSet) Role {
	pays := set&setOf(Pays) != 0
	if isTargetID(words, set) {
		return Target
	}
	role := Unknown
	for i := range words {
		r, final, ok := roleOfWord(words, i, role, set)
		if final {
			return r
		}
		if ok {
			role = r
		}
	}
	switch {
	case pays:
		role = roleInPayment(role, words)
	case role == Payee && set&setOf(Sends, Grants) != 0: // the beneficiary of a message
		role = Recipient
	}
	if p.kind == "boolean" || p.choices && role != Recipient && role != Audience {
		return Option
	}
	if (p.kind == "integer" || p.kind == "number") && role != Amount && role != Target && role != When {
		if role == Unknown || role == Recipient || role == Audience || role == Content {
			return Option
		}
	}
	return role
}

// isTargetID reports whether a name is the ID of a thing, and not of a person or group.
func isTargetID(words []string, set effectSet) bool {
	if !isID(words) {
		return false
	}
	of := words[len(words)-2]
	return of != "user" && of != "member" && parts[of] != Payee && (parts[of] != Audience || set&setOf(Sends) == 0)
}

// roleOfWord returns the role of a word after words that have suggested another role. It returns false for ok if the
// word changes nothing, and true for final if later words do not matter.
func roleOfWord(words []string, i int, role Role, set effectSet) (r Role, final, ok bool) {
	w := words[i]
	pays, sends := set&setOf(Pays) != 0, set&setOf(Sends) != 0
	if w == "code" && (len(words) == 1 && set&setOf(SignsIn) != 0 || i > 0 && codeWords[words[i-1]]) {
		return Secret, true, true
	}
	r, ok = parts[w]
	switch {
	case !ok:
		return Unknown, false, false
	case linkWords[w]:
		return Address, true, true
	case w == "iban" && pays:
		return Payee, true, true
	case w == "address" && set&setOf(Sends, Grants) != 0 && set&setOf(Books) == 0:
		return Recipient, false, true
	case r == Secret && (w != "token" || words[0] != "page"):
		return Secret, true, true
	case w == "value" && i == 0 && !pays && sends:
		return Content, false, true
	}
	return r, false, !repeats(words, i, role, pays)
}

// repeats reports whether a word adds nothing to the words before it: channel_name, recipient_id.
func repeats(words []string, i int, role Role, pays bool) bool {
	switch words[i] {
	case "to": // to_account
		return i == 0 && len(words) > 1
	case "number":
		return i > 0 && (role == Target && !pays || role == Recipient)
	case "name":
		return role != Unknown && role != Content && role != Option
	case "time":
		return role == When
	case "id":
		return role == Recipient || role == Audience || role == Payee
	case "value":
		return i > 0
	case "list":
		return true
	}
	return false
}

// codeWords come before "code" if the code is a secret, unlike a zip code.
var codeWords = setOfWords("verification security auth authentication confirmation access login reset recovery")

// linkWords always stand for web addresses.
var linkWords = setOfWords("url uri link href webpage website webhook")

// roleInPayment returns a role's meaning in a payment: people and accounts receive money, except the account that
// pays.
func roleInPayment(role Role, words []string) Role {
	switch {
	case role == Recipient:
		return Payee
	case role != Target || words[0] == "source":
		return role
	}
	for i, w := range words {
		if (w == "account" || w == "destination") && (i == 0 || words[i-1] != "from" && words[i-1] != "source") {
			return Payee
		}
	}
	return role
}
