package policy

// ParseKind works like Parse for a kind of file.
var ParseKind = parseKind
