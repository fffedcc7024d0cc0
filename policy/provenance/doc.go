// Package provenance says who brought a value into a run: the operator, the user, a field of a tool's answer that nobody
// else can write, people who had to sign in, or text that anybody may have written.
package provenance
