package pii

import (
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/lazy"
)

// phones finds numbers in a typical phone number format, and any number after a word for a phone.
var phones = []detector{
	phoneDetector("+", `\+[1-9](?:[ .()/-]{0,2}[0-9]){7,17}`),
	phoneDetector("0", `00[1-9][0-9]{0,2}[ ./-](?:[ .()/-]{0,2}[0-9]){6,14}`),
	withSame(newDetector("phone", "(123456789", `(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[.-])[2-9][0-9]{2}[.-][0-9]{4}`, acceptAny), samePhone),
	withSame(near("phone", []string{
		"phone", "telefon", "telefono", "telefone", "telefoon", "teléfono", "téléphone", "telefax",
		"mobile", " tel", " fax", " cell", " mobil", " handy", " tél",
	}, `\+?\(?[0-9](?:[ .()/-]{0,2}[0-9]){5,14}`, func(value string) bool {
		number := digits(value)
		return len(number) >= 6 && len(number) <= 15 && !date().MatchString(number)
	}), samePhone),
}

// date matches eight digits that form a date: 20240131.
var date = lazy.Regexp(`^(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$`)

// countries lists the International Telecommunication Union's country codes.
var countries = strings.Fields(`1 20 211 212 213 216 218 220 221 222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 237 238 239 240 241 242 243
	244 245 246 247 248 249 250 251 252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 268 269 27 290 291 297 298 299 30 31 32 33 34 350 351 352
	353 354 355 356 357 358 359 36 370 371 372 373 374 375 376 377 378 379 380 381 382 383 385 386 387 389 39 40 41 420 421 423 43 44 45 46 47 48 49 500
	501 502 503 504 505 506 507 508 509 51 52 53 54 55 56 57 58 590 591 592 593 594 595 596 597 598 599 60 61 62 63 64 65 66 670 672 673 674 675 676 677
	678 679 680 681 682 683 685 686 687 688 689 690 691 692 7 800 808 81 82 84 850 852 853 855 856 86 870 878 880 881 882 883 886 888 90 91 92 93 94 95
	960 961 962 963 964 965 966 967 968 970 971 972 973 974 975 976 977 979 98 992 993 994 995 996 998`)

// phoneDetector returns a detector for numbers with a country code, with nine to fifteen digits. Further digits do not
// belong to the number.
func phoneDetector(first, pattern string) detector {
	re := lazy.Regexp(`^` + pattern)
	return detector{kind: "phone", first: first, same: samePhone, at: func(text string, i int) (int, int, bool) {
		value := re().FindString(text[i:min(i+window, len(text))])
		for len(samePhone(value)) > 15 {
			cut := strings.LastIndexAny(value, " ./-()")
			if cut < 0 {
				return 0, 0, false
			}
			value = strings.TrimRight(value[:cut], " ./-(")
		}
		number := samePhone(value)
		return i, i + len(value), len(number) >= 9 && alone(text, i, i+len(value)) &&
			lo.SomeBy(countries, func(code string) bool { return strings.HasPrefix(number, code) })
	}}
}

// samePhone returns a number's digits, without the international prefix and a zero that is not dialled.
func samePhone(text string) string {
	return strings.TrimPrefix(digits(strings.Replace(text, "(0)", "", 1)), "00")
}
