package pii_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks/pii"
)

func filter(t testing.TB, o pii.Options) *pii.Filter {
	t.Helper()
	f, err := pii.New(o)
	require.NoError(t, err)
	return f
}

// values are examples that the issuers of these numbers, or the public, use as such.
var values = map[string][]string{
	"email": {"ada@example.com", "ada.lovelace+x@mail.example.co.uk", "jörg@müller.de", "o'neill@example.org", "a_b%c@xn--mller-kva.xn--p1ai", "1@a.io", "_x@a-b.museum"},
	"phone": {
		"+49 30 1234567", "+49 (0)30 1234567", "+1 (555) 123-4567", "+44 20 7946 0018", "+4915112345678", "+354 123 4567", "0049 30 1234567", "+33 1.23.45.67.89",
		"(212) 555-0123", "212-555-0123", "212.555.0123", "1-212-555-0123",
	},
	"credit_card": {
		"4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111", "5555555555554444", "2223003122003222", "378282246310005", "3782 822463 10005",
		"6011111111111117", "3530111333300000", "30569309025904", "4222222222222",
	},
	"iban": {
		"DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "GB82 WEST 1234 5698 7654 32", "FR1420041010050500013M02606", "NO9386011117947", "ch9300762011623852957",
		"MT84MALT011000012345MTLCAST001S",
	},
	"ip":      {"203.0.113.7", "8.8.8.8", "2001:db8::1", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "2a00:1450:4001:81b::200e"},
	"us_ssn":  {"078-05-1120", "123-45-6789"},
	"es_dni":  {"12345678Z", "12345678-Z", "X1234567L", "X-1234567-L"},
	"it_cf":   {"RSSMRA85T10A562S"},
	"fr_nir":  {"255081416802538", "2 55 08 14 168 025 38"},
	"cn_id":   {"11010519491231002X"},
	"fi_hetu": {"131052-308T"},
	"se_pnr":  {"811218-9876", "19811218-9876"},
	"br_cpf":  {"529.982.247-25"},
}

// named are numbers that are only found behind a word.
var named = map[string][]string{
	"phone":      {"phone: 1234567", "Tel. 030/1234567", "telephone number 555 123 4567", "Telefonnummer: 0171 1234567", "mobile=07700900123", "Fax: (030) 123456", "tel:5551234567", "Teléfono 912 345 678", "téléphone : 01 23 45 67 89", "Telefon-Nr.: 1234567"},
	"br_cpf":     {"CPF: 52998224725"},
	"pl_pesel":   {"PESEL 44051401359", "nr PESEL: 44051401359"},
	"nl_bsn":     {"BSN: 111222333", "bsn 1112.22.333", "burgerservicenummer 111222333"},
	"de_idnr":    {"Steuer-ID: 86095742719", "IdNr. 86 095 742 719", "Steueridentifikationsnummer 86095742719"},
	"in_aadhaar": {"Aadhaar 2341 2341 2346", "aadhaar number: 234123412346"},
	"uk_nhs":     {"NHS number: 943 476 5919", "NHS 9434765919"},
}

func TestFound(t *testing.T) {
	f := filter(t, pii.Options{})
	kinds := map[string]bool{}
	for kind, list := range values {
		kinds[kind] = true
		mark := "[" + strings.ToUpper(kind) + "]"
		for _, value := range list {
			for _, around := range [][2]string{
				{"", ""}, {"it is ", ", I think"}, {"(", ")"}, {"\"", "\""}, {"x: ", "."}, {"a\n", "\nb"}, {"<", ">"}, {"is it ", "?"}, {"'", "';"}, {"a;", ";b"},
				{"no. 12 ", " or 7"}, {"=", "&x=1"}, {"…", "…"},
			} {
				got, counts := f.Text(around[0] + value + around[1])
				assert.Equal(t, around[0]+mark+around[1], got, "%q", around[0]+value+around[1])
				assert.Equal(t, pii.Counts{kind: 1}, counts, "%q", around[0]+value+around[1])
			}
		}
	}
	for kind, list := range named {
		kinds[kind] = true
		for _, text := range list {
			got, counts := f.Text("her " + text + ", and so on")
			assert.Equal(t, pii.Counts{kind: 1}, counts, "%q: %q", text, got)
			assert.NotRegexp(t, `\d{3}`, got, "%q", text)
			only := text[strings.IndexAny(text, "0123456789(+"):]
			if kind != "phone" {
				plain, counts := f.Text("it is " + only + ", or so")
				assert.Empty(t, counts, "%q", plain)
			}
		}
	}
	for _, kind := range pii.Kinds() {
		assert.True(t, kinds[kind], "no example of %s", kind)
	}
}

// What looks like it and is none stays.
func TestLookalikes(t *testing.T) {
	f := filter(t, pii.Options{})
	for _, text := range []string{
		// Nearly an address.
		"logo@2x.png", "icons/close@3x.webp", "npm i react@18.2.0 lodash@latest", "import @types/node", "git@github.com:grapnel-go/grapnel.git", "ada@host:/srv/x",
		"https://ada:secret@example.com/x", "ssh://git@example.com/x.git", "postgres://app@db.example.com/x", "@mention", "a@b", "a@b.c", "user@localhost", "a..b@example.com",
		"a.@example.com", "a@-.com", "x@y@z", "dns@", "@Override", "name@domain",
		// Nearly a phone number.
		"2024-01-15", "2024-01-15 12:30:45", "12:30:45.123456", "v1.22.333-4444", "10.5555/12345678", "ISBN 978-3-16-148410-0", "1234567890", "555-1234", "order 212-555-01234",
		"112-555-0123", "212-155-0123", "123e4567-e89b-12d3-a456-426614174000", "+1 234", "+0200", "+999 123 456 789", "1 + 4915112345", "3.14159265358979", "0001234567890",
		"phone 20240115", "hotel: 1234567", "00 12 34 56 78 90", "1234567-212-555-0123", "1,234,567,890", "phone: 12345", "phones and 12345678 others", "2^31-1 = 2147483647", "x+491511234567a",
		// Nearly a card.
		"4111111111111112", "1234567890123456", "0000000000000000", "4444444444444448x", "a4111111111111111", "0.4111111111111111", "14111111111111111", "41111111111111111",
		"1700000000000000000", "9999999999999995", "6666666666666664666666", "4111_1111_1111_1111", "4111  1111  1111  1111", "550e8400-4111111111111111",
		// Nearly an account.
		"DE89370400440532013001", "DE8937040044053201300", "DE893704004405320130000", "XX89370400440532013000", "GB82 WEST 1234 5698", "DE89", "ab12cdef", "xDE89370400440532013000",
		// Nearly an address of the net, or one that names no host.
		"127.0.0.1", "10.1.2.3", "192.168.1.1", "172.16.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "169.254.1.1", "::1", "::", "fe80::1", "fd00::1", "256.1.1.1", "1.2.3", "1.2.3.4.5",
		"version 1.2.3.4", "Version: 8.8.8.8", "v8.8.8.8", "release 2.3.4.5", "08.8.8.8", "std::vector", "12:34:56", "2c:54:91:88:c9:e3", "2001:db8", "Face::add", "20:30:40",
		"2001:db8:::1", "x2001:db8::1", "8.8.8.8a",
		// Nearly a national number.
		"000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "123-45-67890", "12345678A", "X1234567A", "RSSMRA85T10A562T", "255081416802539", "110105194912310021",
		"11010519491331002X", "131052-308U", "811218-9877", "529.982.247-26", "111.111.111-11", "BSN: 111222334", "PESEL 44051401358", "Steuer-ID: 86095742718", "Aadhaar 2341 2341 2347",
		"NHS number: 943 476 5918", "CPF: 52998224726", "36574261809", "111222333", "44051401359", "52998224725", "2341 2341 2346", "943 476 5919",
		// What stands in tools' answers anyhow.
		"a1b2c3d4e5f6a7b8c9d0", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "2024-01-15T12:30:45.000Z", "@@ -12,7 +12,9 @@", "line 1234:56", "0x41414141",
		"[EMAIL]", "[CREDIT_CARD]", "100,000.00", "x = 4 * 1024 * 1024",
	} {
		got, counts := f.Text(text)
		assert.Equal(t, text, got)
		assert.Empty(t, counts)
	}
}

func TestSeveral(t *testing.T) {
	f := filter(t, pii.Options{})
	for text, want := range map[string]string{
		"4111 1111 1111 1111 5555 5555 5555 4444":               "[CREDIT_CARD] [CREDIT_CARD]",
		"1234 4111 1111 1111 1111 99":                           "1234 [CREDIT_CARD] 99",
		"ada@example.com,bob@example.com":                       "[EMAIL],[EMAIL]",
		"Ada <ada@example.com> +49 30 1234567 / 0049 30 765432": "Ada <[EMAIL]> [PHONE] / [PHONE]",
		"mailto:ada@example.com?cc=bob@example.com":             "mailto:[EMAIL]?cc=[EMAIL]",
		"http://203.0.113.7:8080/x and [2001:db8::1]:443":       "http://[IP]:8080/x and [[IP]]:443",
		"8.8.8.8,8.8.4.4":                                       "[IP],[IP]",
		"IBAN DE89 3704 0044 0532 0130 00 and more":             "IBAN [IBAN] and more",
		"card 4111111111111111 exp 12/27":                       "card [CREDIT_CARD] exp 12/27",
		"phone: +49 30 1234567":                                 "phone: [PHONE]",
	} {
		got, _ := f.Text(text)
		assert.Equal(t, want, got)
	}
}

// In JSON, names are words before values, numbers count, and the rest stays to the byte.
func TestJSON(t *testing.T) {
	f := filter(t, pii.Options{})
	for text, want := range map[string]string{
		`{"to" : "ada@example.com", "n":1e3 }`:              `{"to" : "[EMAIL]", "n":1e3 }`,
		`{"to":"\u0061da\u0040example.com"}`:                `{"to":"[EMAIL]"}`,
		`{"card":4111111111111111}`:                         `{"card":"[CREDIT_CARD]"}`,
		`[4111111111111111, 4111111111111112]`:              `["[CREDIT_CARD]", 4111111111111112]`,
		`{"homePhone": "1234567", "id": "1234567"}`:         `{"homePhone": "[PHONE]", "id": "1234567"}`,
		`{"phone_number": 5551234567, "other": 5551234567}`: `{"phone_number": "[PHONE]", "other": 5551234567}`,
		`{"bsn":111222333,"no":111222333}`:                  `{"bsn":"[NL_BSN]","no":111222333}`,
		`{"ada@example.com": true}`:                         `{"[EMAIL]": true}`,
		`{"text":"{\"to\":\"ada@example.com\"}"}`:           `{"text":"{\"to\":\"[EMAIL]\"}"}`,
		`"ada@example.com"`:                                 `"[EMAIL]"`,
		`{"created": 20240115, "time": 1700000000000}`:      `{"created": 20240115, "time": 1700000000000}`,
	} {
		got, _ := f.Text(text)
		assert.Equal(t, want, got)
		assert.True(t, json.Valid([]byte(got)))
	}
}

func TestStrategies(t *testing.T) {
	key := []byte("0123456789abcdef")
	mask := filter(t, pii.Options{Strategy: pii.Mask})
	for value, want := range map[string]string{
		"ada@example.com": "a***@example.com", "4111 1111-1111 1111": "**** ****-**** 1111", "DE89370400440532013000": "******************3000", "203.0.113.7": "203.0.*.*",
		"2001:db8::1": "2001:db8:*", "078-05-1120": "***-**-**20", "+49 30 1234567": "+** ** *****67",
	} {
		got, _ := mask.Text("x " + value + " y")
		assert.Equal(t, "x "+want+" y", got)
	}

	hash := filter(t, pii.Options{Strategy: pii.Hash, Key: key})
	same := func(a, b string) bool {
		t.Helper()
		x, _ := hash.Text(a)
		y, _ := hash.Text(b)
		assert.Regexp(t, `^\[[A-Z_]+:[0-9a-f]{12}\]$`, x)
		return x == y
	}
	assert.True(t, same("ada@example.com", "Ada@Example.com"))
	assert.True(t, same("4111 1111 1111 1111", "4111-1111-1111-1111"))
	assert.True(t, same("+49 (0)30 1234567", "0049 30 1234567"))
	assert.True(t, same("2001:db8::1", "2001:0db8:0:0:0:0:0:1"))
	assert.False(t, same("ada@example.com", "bob@example.com"))
	other, _ := filter(t, pii.Options{Strategy: pii.Hash, Key: []byte("another key of 16 bytes")}).Text("ada@example.com")
	mine, _ := hash.Text("ada@example.com")
	assert.NotEqual(t, mine, other, "it depends on the key")

	mixed := filter(t, pii.Options{Strategies: map[string]pii.Strategy{"email": pii.Mask}, Kinds: []string{"email", "ip"}})
	got, counts := mixed.Text("ada@example.com 8.8.8.8 4111111111111111")
	assert.Equal(t, "a***@example.com [IP] 4111111111111111", got)
	assert.Equal(t, pii.Counts{"email": 1, "ip": 1}, counts)
}

func TestOptions(t *testing.T) {
	f := filter(t, pii.Options{
		Kinds:     []string{"email"},
		Detectors: []pii.Detector{{Kind: "badge", Regexp: `badge (\d{6})`, Valid: func(v string) bool { return v != "000000" }}},
		Except:    []string{"Support@Example.com"},
	})
	got, counts := f.Text("badge 123456, badge 000000, support@example.com, ada@example.com, 8.8.8.8")
	assert.Equal(t, "badge [BADGE], badge 000000, support@example.com, [EMAIL], 8.8.8.8", got)
	assert.Equal(t, pii.Counts{"badge": 1, "email": 1}, counts)

	_, err := pii.New(pii.Options{
		Kinds: []string{"emial"}, Strategy: "erase", Strategies: map[string]pii.Strategy{"ip": pii.Hash, "badge": pii.Block},
		Detectors: []pii.Detector{{Kind: "email", Regexp: "x"}, {Kind: "a b", Regexp: "x"}, {Kind: "open", Regexp: "("}, {Kind: "nothing", Regexp: "x*"}},
	})
	require.Error(t, err)
	for _, want := range []string{
		`creating a filter of personal data: `, `unknown kind "emial": expected one of email, `, `unknown strategy "erase"`, "hashes need a key of 16 bytes",
		`a strategy is set for "badge", which is not among the kinds to find`, `detector "email": the kind`, `detector "a b": the kind`, `detector "open": error parsing`, `detector "nothing": the pattern matches the empty text`,
	} {
		assert.ErrorContains(t, err, want)
	}
}

// Two of one kind that overlap are one piece.
func TestOverlapsCountOnce(t *testing.T) {
	clean, counts := filter(t, pii.Options{}).Text("to ada.lovelace+x@mail.ce+x@le.co")
	assert.Equal(t, "to [EMAIL]", clean)
	assert.Equal(t, pii.Counts{"email": 1}, counts)
}

// What comes out is clean: looked at again, nothing is found; JSON stays JSON; and what was not found is still there.
func FuzzText(f *testing.F) {
	for _, kind := range pii.Kinds() {
		for _, value := range slices.Concat(values[kind], named[kind]) {
			f.Add("a " + value + " b")
			f.Add(fmt.Sprintf(`{"phone":%q,"n":[%q]}`, value, value))
		}
	}
	redactor, err := pii.New(pii.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, counts := redactor.Text(text)
		if len(counts) == 0 {
			require.Equal(t, text, once)
			return
		}
		if strings.ContainsAny(text[:1], `{["`) && json.Valid([]byte(text)) {
			require.True(t, json.Valid([]byte(once)), "%q became %q", text, once)
		}
		marks := 0
		for kind, n := range counts {
			require.Positive(t, n)
			marks += strings.Count(once, "["+strings.ToUpper(kind)+"]") // none for what began within another kind
		}
		require.Positive(t, marks)
	})
}

// The time grows with the length and with nothing else.
func BenchmarkText(b *testing.B) {
	f := filter(b, pii.Options{})
	for name, piece := range map[string]string{
		"prose": "The quick brown fox jumps over the lazy dog, 12 times a day. ", "digits": "1 2 3 4 ", "ones": "4111", "locals": "a.b+c", "ats": "a@", "colons": "2001:", "plus": "+49 30 ",
		"found": "ada@example.com 4111 1111 1111 1111 ",
	} {
		for _, n := range []int{10_000, 100_000} {
			text := strings.Repeat(piece, n/len(piece))
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					f.Text(text)
				}
			})
		}
	}
}
