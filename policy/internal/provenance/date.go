package provenance

import (
	"strconv"
	"strings"
)

// day is a date; without a year if Year is zero.
type day struct{ Year, Month, Day int }

func (d day) yearless() string { return strconv.Itoa(d.Month) + "-" + strconv.Itoa(d.Day) }

func (d day) String() string {
	if d.Year == 0 {
		return d.yearless()
	}
	return strconv.Itoa(d.Year) + "-" + d.yearless()
}

func (d day) valid() bool {
	return d.Month >= 1 && d.Month <= 12 && d.Day >= 1 && d.Day <= 31 && (d.Year == 0 || d.Year >= 1000 && d.Year <= 9999)
}

// dateOf parses a date in the notations that programs write. It ignores a time behind the date.
func dateOf(text string) (day, bool) {
	if len(text) < 8 || len(text) > 40 || !isDigit(text[0]) {
		return day{}, false
	}
	date, clock := text, ""
	if i := strings.IndexAny(text, "T "); i > 0 {
		date, clock = text[:i], text[i+1:]
	}
	if clock != "" && (!isDigit(clock[0]) || !strings.Contains(clock, ":") || strings.Trim(clock, "0123456789:.+-ZAPMapm ") != "") {
		return day{}, false
	}
	days := datesIn(date)
	if len(days) == 0 {
		return day{}, false
	}
	return days[0], true
}

// datesIn returns the dates that a chunk may mean: 2024-05-01, 2024/5/1, 20.05.2024. For 5/6/2024 it returns both
// readings.
func datesIn(chunk string) []day {
	if len(chunk) < 8 || len(chunk) > 10 {
		return nil
	}
	var n [3]int
	part, separator := 0, byte(0)
	for i := range len(chunk) {
		switch c := chunk[i]; {
		case isDigit(c):
			n[part] = n[part]*10 + int(c-'0')
		case (c == '-' || c == '/' || c == '.') && (separator == 0 || separator == c) && part < 2 && i > 0:
			separator = c
			part++
		default:
			return nil
		}
	}
	if part != 2 {
		return nil
	}
	var days []day
	add := func(d day) {
		if d.valid() && d.Year != 0 {
			days = append(days, d)
		}
	}
	if n[0] >= 1000 {
		add(day{n[0], n[1], n[2]})
		return days
	}
	add(day{n[2], n[1], n[0]})
	if n[0] != n[1] {
		add(day{n[2], n[0], n[1]})
	}
	return days
}

var months = map[string]int{
	"january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4, "may": 5, "june": 6, "jun": 6,
	"july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sep": 9, "sept": 9, "october": 10, "oct": 10,
	"november": 11, "nov": 11, "december": 12, "dec": 12,
}

var between = map[string]bool{
	"to": true, "the": true, "of": true, "and": true, "until": true, "till": true, "through": true, "or": true, "from": true,
	"st": true, "nd": true, "rd": true, "th": true, "on": true, "by": true,
}

// calendar finds dates with English month names: May 1st, 2024; from the 13th to the 17th of May.
type calendar struct {
	emit  func(key)
	days  []int // days of the month seen before the month's name
	month int
	open  []day // dates that a year may still follow
}

func (c *calendar) word(w string) {
	if len(w) > 9 {
		c.other()
		return
	}
	n, i := 0, 0
	for i < len(w) && isDigit(w[i]) {
		n = n*10 + int(w[i]-'0')
		i++
	}
	suffix := strings.ToLower(w[i:])
	switch {
	case i == 4 && suffix == "" && n >= 1900 && n < 2200:
		if len(c.open) > 0 {
			c.flush(n)
		}
		c.days, c.month = c.days[:0], 0
	case i > 0 && i <= 2 && n >= 1 && n <= 31 && (suffix == "" || between[suffix]):
		if c.month != 0 {
			c.open = append(c.open, day{0, c.month, n})
			return
		}
		c.days = append(c.days, n)
	case i == 0 && months[suffix] != 0:
		c.month = months[suffix]
		for _, d := range c.days {
			c.open = append(c.open, day{0, c.month, d})
		}
		c.days = c.days[:0]
	case i == 0 && between[suffix]:
	default:
		c.other()
	}
}

func (c *calendar) other() {
	c.flush(0)
	c.days, c.month = c.days[:0], 0
}

// flush emits the open dates, with a year if given.
func (c *calendar) flush(year int) {
	for i, d := range c.open {
		if i < len(c.open)-1 { // from December 30th to January 2nd, 2025: the year belongs to the last date
			c.emit(keyOf(kindDate, d.String()))
		}
		d.Year = year
		c.emit(keyOf(kindDate, d.String()))
	}
	c.open = c.open[:0]
}
