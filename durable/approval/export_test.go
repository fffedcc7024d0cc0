package approval

// ParsePeople parses the text of a file of people.
var ParsePeople = parsePeople

// Diff returns the differences between two JSON texts.
var Diff = diffOf
