package hooks

// Origin identifies the policy rule that a hook implements.
type Origin struct {
	// Policy is the name of the policy, Version its version in the file; empty if the file has none.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	// Hash is a hash, in hexadecimal, of everything that affects decisions: two policies with the same hash make
	// the same decisions.
	Hash string `json:"hash"`
	// Rule is the rule's id within the policy.
	Rule string `json:"rule"`
	// Action is the type of the rule's action, such as agent or http, and Target its target: the name of the agent,
	// tool, pipeline or func, the program, the host. Both are empty for a rule with a decision; Target is empty for
	// an action without a target.
	Action string `json:"action,omitempty"`
	Target string `json:"target,omitempty"`
	// Required reports whether the policy is required: no inner layer can switch it off, and its questions can be
	// answered for a person only by rules of required policies in the same layer or an outer one.
	Required bool `json:"required,omitempty"`
	// OnFailure is the word for a failure in the file, such as block or ignore; empty for the default.
	OnFailure string `json:"on_failure,omitempty"`
	// Layer is the layer of the policy; the outermost is 0.
	Layer int `json:"-"`
	// File and Line are the position of the rule; lines count from one.
	File string `json:"file"`
	Line int    `json:"line"`
}
