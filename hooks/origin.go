package hooks

// Origin says which rule of which file a declared hook stands for.
type Origin struct {
	// Policy names the file's policy, Version is what the file says of itself; empty if
	// it says nothing.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	// Hash is of everything that decides, in hexadecimal: two policies of the same hash
	// decide alike.
	Hash string `json:"hash"`
	// Rule is the rule's id within the policy.
	Rule string `json:"rule"`
	// Action is the type of the rule's action, such as agent or http, and Target what it is done with: the name of the
	// agent, tool, pipeline or func, the program, the host. Both are empty for a rule with a decision, and Target for an
	// action that has none.
	Action string `json:"action,omitempty"`
	Target string `json:"target,omitempty"`
	// Required reports whether the policy is required: no layer further in can switch it
	// off, and its questions are answered in a person's place only by rules of required
	// policies in the same layer or one further out.
	Required bool `json:"required,omitempty"`
	// Layer is the layer of the policy; the outermost is 0.
	Layer int `json:"-"`
	// File and Line are where the rule stands; lines count from one.
	File string `json:"file"`
	Line int    `json:"line"`
}
