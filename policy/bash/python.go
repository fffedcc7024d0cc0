package bash

import (
	"slices"
	"strings"
)

// maxPython is the maximum length in bytes of Python code that is read.
const maxPython = 4096

// pythonReader reads Python code that only computes: it uses names in the lists below, and reads its input and the
// files that open names. Other code, such as a call of an unknown function, is refused.
//
//	import json; print(len(json.load(open('a.json'))['items']))
type pythonReader struct {
	text  string
	reads []string // the files that the code reads
}

// pythonToken is a name, a string without its quotes, or a sign.
type pythonToken struct {
	kind byte // 'n' name, 's' string, 'f' f-string, '+' sign, '0' number
	text string
}

// computes reports whether the code only computes.
func (p *pythonReader) computes() bool {
	tokens, ok := p.tokens()
	if !ok {
		return false
	}
	own := definedFunctions(tokens)
	at := func(i int) pythonToken { return tokenAt(tokens, i) }
	importing, from := false, false
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.text == "\n" || t.text == ";" && t.kind == '+':
			importing, from = false, false
		case importing && t.text == "*":
			return false
		case t.kind == 'f' && !p.formatted(t.text), t.kind == 's' && formatsAttribute().MatchString(t.text):
			return false
		case t.kind != 'n':
		case strings.Contains(t.text, "__"):
			return false
		case t.text == "from" && at(i-1).kind == '+':
			if from = true; !inWords(pythonModules, at(i+1).text) || at(i+2).text != "import" {
				return false
			}
			i++
		case t.text == "import":
			importing = true
		case importing && (t.text == "as" || at(i-1).text == "as"):
		case importing:
			if !mayImport(t.text, at(i+1), from) {
				return false
			}
		case at(i-1).text == "." && at(i-1).kind == '+':
			if !inWords(pythonAttributes, t.text) {
				return false
			}
		case t.text == "open":
			next, ok := p.open(tokens[i+1:])
			if !ok {
				return false
			}
			i += next
		case inWords(pythonNames, t.text), own[t.text]:
		case inWords(pythonOthers, t.text), at(i+1).text == "(" && at(i+1).kind == '+':
			return false
		}
	}
	return true
}

// definedFunctions returns the names of the functions that the code defines.
func definedFunctions(tokens []pythonToken) map[string]bool {
	names := map[string]bool{}
	for i, t := range tokens {
		if i > 0 && t.kind == 'n' && tokens[i-1].text == "def" {
			names[t.text] = true
		}
	}
	return names
}

// tokenAt returns the token with an index. Before the first and after the last token are ends of lines.
func tokenAt(tokens []pythonToken, i int) pythonToken {
	if i < 0 || i >= len(tokens) {
		return pythonToken{kind: '+', text: "\n"}
	}
	return tokens[i]
}

// mayImport reports whether code that only computes may import a name: a module or, if from is true, a name of a module.
func mayImport(name string, next pythonToken, from bool) bool {
	if from {
		return inWords(pythonNames, name) || inWords(pythonAttributes, name)
	}
	return inWords(pythonModules, name) && next.text != "."
}

// open reads the arguments of open, and returns their number of tokens: ('a.json'), ("a", "rb"), ('a', encoding='utf-8').
func (p *pythonReader) open(tokens []pythonToken) (int, bool) {
	if len(tokens) < 3 || tokens[0].text != "(" || tokens[1].kind != 's' || tokens[1].text == "" || strings.Contains(tokens[1].text, `\`) {
		return 0, false
	}
	p.reads = append(p.reads, tokens[1].text)
	n := 2
	if len(tokens) > n+1 && tokens[n].text == "," && tokens[n+1].kind == 's' && slices.Contains([]string{"r", "rb", "rt"}, tokens[n+1].text) {
		n += 2
	}
	if len(tokens) > n+3 && tokens[n].text == "," && tokens[n+1].text == "encoding" && tokens[n+2].text == "=" && tokens[n+3].kind == 's' {
		n += 4
	}
	return n + 1, n < len(tokens) && tokens[n].text == ")"
}

// formatted reads the expressions in an f-string.
func (p *pythonReader) formatted(text string) bool {
	text = strings.NewReplacer("{{", "", "}}", "").Replace(text)
	for {
		_, rest, found := strings.Cut(text, "{")
		if !found {
			return true
		}
		expression, after, closed := strings.Cut(rest, "}")
		inner := pythonReader{text: expression}
		if !closed || strings.Contains(expression, "{") || strings.Contains(expression, `\`) || !inner.computes() {
			return false
		}
		p.reads, text = append(p.reads, inner.reads...), after
	}
}

// tokens splits the code. It returns false for text that it does not know.
func (p *pythonReader) tokens() ([]pythonToken, bool) {
	var tokens []pythonToken
	text := p.text
	for text != "" {
		c := text[0]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			text = text[1:]
		case c == '#':
			_, text, _ = strings.Cut(text, "\n")
			text = "\n" + text
		case c == '\\':
			if !strings.HasPrefix(text, "\\\n") {
				return nil, false
			}
			text = text[2:]
		case c >= '0' && c <= '9':
			end := strings.IndexFunc(text, func(r rune) bool { return !isAlnum(r) && r != '_' && r != '.' })
			if end < 0 {
				end = len(text)
			}
			tokens = append(tokens, pythonToken{'0', text[:end]})
			text = text[end:]
		case isAlnum(rune(c)) || c == '_' || c == '\'' || c == '"':
			end := strings.IndexFunc(text, func(r rune) bool { return !isAlnum(r) && r != '_' })
			if end < 0 {
				end = len(text)
			}
			word, rest := text[:end], text[end:]
			if rest == "" || rest[0] != '\'' && rest[0] != '"' || len(word) > 2 || strings.Trim(strings.ToLower(word), "rbfu") != "" {
				tokens, text = append(tokens, pythonToken{'n', word}), rest
				continue
			}
			value, behind, ok := pythonString(rest)
			if !ok {
				return nil, false
			}
			kind := byte('s')
			if strings.ContainsAny(word, "fF") {
				kind = 'f'
			}
			tokens, text = append(tokens, pythonToken{kind, value}), behind
		case strings.IndexByte("()[]{}.,:;+-*/%<>=!&|^~\n", c) >= 0:
			tokens, text = append(tokens, pythonToken{'+', text[:1]}), text[1:]
		default:
			return nil, false
		}
	}
	return tokens, true
}

// pythonString reads a string literal with its quotes, and returns the text between them and the rest.
func pythonString(text string) (value, rest string, ok bool) {
	quote := text[:1]
	if strings.HasPrefix(text, strings.Repeat(quote, 3)) {
		quote = text[:3]
	}
	for i := len(quote); i+len(quote) <= len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '\n' && len(quote) == 1:
			return "", "", false
		case text[i:i+len(quote)] == quote:
			return text[len(quote):i], text[i+len(quote):], true
		}
	}
	return "", "", false
}

// formatsAttribute matches text from which the method format would read an attribute: {0.name}, {0[name]}.
var formatsAttribute = lazyRegexp(`\{[^{}:!]*[.\[]`)

// inWords reports whether the list contains the name.
func inWords(list, name string) bool { return strings.Contains(list, " "+name+" ") }

// The names that code may use. Each list begins and ends with a blank.
const (
	pythonModules = " json math sys re collections itertools statistics datetime decimal fractions string textwrap time random hashlib base64 struct " +
		"functools pprint unicodedata calendar heapq bisect zlib binascii colorsys cmath numbers html "
	// pythonNames holds keywords, and builtins that only compute.
	pythonNames = " for in if else elif while not and or is None True False lambda def return with as try except finally raise pass break continue assert " +
		"del abs all any ascii bin bool bytearray bytes chr complex dict divmod enumerate filter float format frozenset hash hex int isinstance issubclass " +
		"iter len list map max min next oct ord pow print range repr reversed round set slice sorted str sum tuple zip Exception ValueError KeyError " +
		"IndexError TypeError StopIteration ZeroDivisionError exit quit Counter defaultdict OrderedDict namedtuple deque datetime date timedelta timezone " +
		"Decimal Fraction dumps loads load sqrt chain product permutations combinations reduce partial mean median pprint sleep "
	// pythonOthers holds builtins that may do more. They must not be used under another name, either.
	pythonOthers = " exec eval compile open getattr setattr delattr globals locals vars dir input breakpoint object super type property classmethod " +
		"staticmethod memoryview callable help copyright credits license class async await yield global nonlocal import from "
	pythonAttributes = " loads load dumps get items keys values append extend insert pop sort reverse index count split rsplit splitlines strip lstrip " +
		"rstrip join replace format lower upper title capitalize swapcase startswith endswith find rfind isdigit isalpha isalnum isspace isnumeric encode " +
		"decode hex zfill ljust rjust center partition rpartition update add discard union intersection difference issubset issuperset most_common " +
		"elements setdefault clear copy removeprefix removesuffix expandtabs translate maketrans casefold sub subn match search findall finditer group " +
		"groups groupdict start end span escape fullmatch IGNORECASE MULTILINE DOTALL I M S X VERBOSE sqrt floor ceil trunc pi e tau inf nan log log2 " +
		"log10 log1p exp sin cos tan asin acos atan atan2 sinh cosh tanh degrees radians pow gcd lcm factorial comb perm isclose isnan isinf hypot dist " +
		"prod fsum fabs mean median stdev pstdev mode variance quantiles fmean Counter defaultdict OrderedDict namedtuple deque popleft appendleft rotate " +
		"chain from_iterable product permutations combinations combinations_with_replacement accumulate groupby islice cycle repeat zip_longest takewhile " +
		"dropwhile starmap pairwise batched reduce partial lru_cache cache datetime date time timedelta timezone utc UTC now today utcnow strftime " +
		"strptime fromtimestamp utcfromtimestamp isoformat fromisoformat timestamp total_seconds year month day hour minute second weekday isoweekday days " +
		"seconds monotonic perf_counter sleep Decimal Fraction quantize numerator denominator limit_denominator as_integer_ratio is_integer random randint " +
		"randrange choice choices shuffle sample seed uniform gauss hexdigest digest md5 sha1 sha224 sha256 sha384 sha512 blake2b new b64encode b64decode " +
		"urlsafe_b64encode urlsafe_b64decode b32encode b32decode pack unpack calcsize hexlify unhexlify crc32 adler32 compress decompress stdin stdout " +
		"stderr argv exit version version_info maxsize byteorder float_info buffer read readline readlines write flush close ascii_letters ascii_lowercase " +
		"ascii_uppercase digits punctuation whitespace printable name category normalize dedent indent fill wrap shorten pprint pformat JSONDecodeError " +
		"isocalendar monthrange month_name day_name isleap heappush heappop heapify nlargest nsmallest bisect bisect_left bisect_right bit_length " +
		"bit_count to_bytes from_bytes real imag conjugate args unescape "
)
