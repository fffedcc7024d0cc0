package pii

import (
	"strconv"
	"strings"
)

// nationals finds numbers that states assign to people. Numbers of digits with one check digit count only after a hint,
// because one in ten numbers passes the check.
var nationals = []detector{
	newDetector("us_ssn", anyDigit, `[0-9]{3}-[0-9]{2}-[0-9]{4}`, isSSN),
	newDetector("es_dni", anyDigit+"XYZ", `(?:[0-9]{8}|[XYZ]-?[0-9]{7})-?[A-Z]`, isDNI),
	newDetector("it_cf", capitals, `[A-Z]{6}[0-9LMNPQRSTUV]{2}[ABCDEHLMPRST][0-9LMNPQRSTUV]{2}[A-Z][0-9LMNPQRSTUV]{3}[A-Z]`, codiceFiscale),
	newDetector("fr_nir", "12", `[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]|[2-9][0-9]) ?(?:[0-9]{2}|2[AB]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}`, isNIR),
	newDetector("cn_id", "123456789", `[1-9][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]`, chineseID),
	newDetector("fi_hetu", anyDigit, `[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]`, isHETU),
	newDetector("se_pnr", anyDigit, `(?:19|20)?[0-9]{6}[-+][0-9]{4}`, isPersonnummer),
	newDetector("br_cpf", anyDigit, `[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}`, isCPF),
	near("br_cpf", []string{" cpf"}, `[0-9]{11}`, isCPF),
	near("pl_pesel", []string{"pesel"}, `[0-9]{11}`, isPESEL),
	near("nl_bsn", []string{" bsn", "burgerservice", " sofi"}, `[0-9]{8,9}|[0-9]{4}\.[0-9]{2}\.[0-9]{3}`, isBSN),
	near("de_idnr", []string{"steuer-id", "steuerid", "identifikations", " idnr"}, `[1-9][0-9](?: ?[0-9]{3}){3}`, steuerID),
	near("in_aadhaar", []string{"aadhaar", "aadhar", "uidai"}, `[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}`, passesVerhoeff),
	near("uk_nhs", []string{" nhs"}, `[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}`, isNHSNumber),
}

func isSSN(v string) bool {
	return v[:3] != "000" && v[:3] != "666" && v[0] != '9' && v[3:5] != "00" && v[5:] != "0000"
}

// parseDigits returns digits as a number.
func parseDigits(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// weightedSum returns the sum of digits, each times its weight.
func weightedSum(v string, weights ...int) (sum int) {
	for i, w := range weights {
		sum += int(v[i]-'0') * w
	}
	return sum
}

// isDay reports whether the digits are a valid day in a month.
func isDay(month, day string) bool {
	return parseDigits(month) >= 1 && parseDigits(month) <= 12 && parseDigits(day) >= 1 && parseDigits(day) <= 31
}

func isDNI(v string) bool {
	n := v[:len(v)-1]
	if at := strings.IndexByte("XYZ", n[0]); at >= 0 {
		n = strconv.Itoa(at) + n[1:]
	}
	return "TRWAGMYFPDXBNJZSQVHLCKE"[parseDigits(n)%23] == v[len(v)-1]
}

func codiceFiscale(v string) bool {
	// The values for characters at odd positions. Digits have the values of the first ten letters.
	odd := [26]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	sum := 0
	for i := range 15 {
		place := int(v[i] - 'A')
		if isDigit(rune(v[i])) {
			place = int(v[i] - '0')
		}
		if i%2 == 0 {
			place = odd[place]
		}
		sum += place
	}
	return byte('A'+sum%26) == v[15]
}

func isNIR(v string) bool {
	n := strings.NewReplacer("2A", "19", "2B", "18").Replace(v[5:7])
	return 97-parseDigits(v[:5]+n+v[7:13])%97 == parseDigits(v[13:])
}

func chineseID(v string) bool {
	sum := weightedSum(v, 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
	return isDay(v[10:12], v[12:14]) && "10X98765432"[sum%11] == v[17]
}

func isHETU(v string) bool {
	n := parseDigits(v[:6] + v[len(v)-4:len(v)-1])
	return isDay(v[2:4], v[:2]) && "0123456789ABCDEFHJKLMNPRSTUVWXY"[n%31] == v[len(v)-1]
}

func isPersonnummer(v string) bool {
	v = v[len(v)-10:]
	return isDay(v[2:4], v[4:6]) && passesLuhn(v)
}

func isCPF(v string) bool {
	digit := func(n int) int {
		sum := 0
		for i := range n {
			sum += int(v[i]-'0') * (n + 1 - i)
		}
		return sum * 10 % 11 % 10
	}
	return strings.Trim(v, v[:1]) != "" && digit(9) == int(v[9]-'0') && digit(10) == int(v[10]-'0')
}

func isPESEL(v string) bool {
	month := strconv.Itoa(parseDigits(v[2:4]) % 20)
	return isDay(month, v[4:6]) && weightedSum(v, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)%10 == 0
}

func isBSN(v string) bool {
	v = strings.Repeat("0", 9-len(v)) + v
	return parseDigits(v) > 0 && weightedSum(v, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0
}

func steuerID(v string) bool {
	product := 10
	for i := range 10 {
		sum := (int(v[i]-'0') + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return (11-product)%10 == int(v[10]-'0')
}

func isNHSNumber(v string) bool {
	return 11-weightedSum(v, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11 == int(v[9]-'0') || weightedSum(v, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11 == 0 && v[9] == '0'
}

// passesVerhoeff reports whether digits pass the check in the group of a pentagon's turns and flips.
func passesVerhoeff(v string) bool {
	turn := [8]string{"0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258"}
	join := func(a, b int) int {
		switch {
		case a < 5 && b < 5:
			return (a + b) % 5
		case a < 5:
			return (a+b)%5 + 5
		case b < 5:
			return (a-b)%5 + 5
		}
		return (a - b + 5) % 5
	}
	check := 0
	for i := range len(v) {
		check = join(check, int(turn[i%8][v[len(v)-1-i]-'0']-'0'))
	}
	return check == 0
}
