package approval

// ParsePeople parses the text of a file of people.
var ParsePeople = parsePeople
