// Package pii finds personal data (e-mail addresses, phone numbers, cards, bank accounts, IP addresses, national
// numbers) in tool results, user input and model replies. It removes the data before anything else sees it.
//
//	filter, err := pii.New(pii.Options{
//		Kinds:      []string{"email", "phone", "credit_card", "iban"},
//		Strategy:   pii.Redact,
//		Strategies: map[string]pii.Strategy{"credit_card": pii.Block},
//	})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(filter.Results(), filter.Input())).Build().Get()
//
// # Kinds
//
//   - email: addresses with a domain that has a dot; not a URL's or ssh user, and not file names such as logo@2x.png.
//   - phone: numbers with a country code after + or 00, North American numbers in their usual format, and any number
//     after a word such as phone, tel or mobile. Other digits are not treated as phone numbers.
//   - credit_card: 13 to 19 digits that pass Luhn's check and begin like an issuer's cards.
//   - iban: account numbers of a country's length that pass the check of ISO 13616 (mod 97), in groups or not.
//   - ip: public addresses, version 4 and 6. Private and local addresses do not identify a person. Numbers after a word
//     such as version are not addresses.
//   - us_ssn, es_dni, it_cf, fr_nir, cn_id, fi_hetu, se_pnr, br_cpf, and, only after a word that names the number,
//     pl_pesel, nl_bsn, de_idnr, in_aadhaar, uk_nhs: national numbers, recognized by their format and their check
//     digits (the us_ssn has none).
//
// Options.Detectors adds your own detectors. A number that is part of a longer word or number never matches. If two
// findings overlap, the one that begins first wins. If both begin at the same place, the longer one wins. If the other
// one ends later, both count, and the whole text is redacted under the first one's name.
//
// Characters that do not print may split a finding. So may one line break within a word or number, except for phone, ip
// and us_ssn.
//
// Names, postal addresses and dates of birth are not found, because they have no recognisable format. A finding can
// still be another number whose check digit fits by chance.
//
// # Strategies
//
// Redact replaces a finding with [EMAIL]. Mask replaces it with stars that keep a recognisable part (a***@example.com,
// a card's last four digits). Hash replaces it with [EMAIL:3f2a81c09d44], which is the same for the same value and key,
// regardless of the value's format. Block withholds the whole result, input, or reply text. Each kind can have its own
// strategy.
//
// # Searched text
//
// Like package redact, it searches all parts of content: text, text files and URLs. In JSON it searches strings,
// unescaped, and numbers. A member's name counts as the word before its value, and before each value in a list. JSON
// stays valid. Results searches every text that a tool call leaves, including failed and denied calls; see
// hooks.ToolResultContext.Filter. Replies searches every text in a reply, including thoughts and call arguments, so
// that tools do not get the removed data; see hooks.ReplyContext.Filter. Input searches user input. A streamed reply is
// held back until the hook has seen all of it.
//
// # Cost
//
// Patterns are RE2, and checks read a bounded number of characters. The time grows only with the text's length.
//
// # Failure and concurrency
//
// The hooks are guards. They run first at input points and last at output points. If one fails, the text is withheld. A
// Filter is immutable and can serve any number of runs at the same time. Options.Told gets kinds and counts, never the
// values.
package pii
