package hooks

// Origin identifies the policy rule that a hook implements.
type Origin struct {
	// Policy is the policy's name, Version its version in the file. Version is empty if the file has none.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	// Hash is a hexadecimal hash of everything that affects decisions. Two policies with the same hash make the same
	// decisions.
	Hash string `json:"hash"`
	// Rule is the rule's ID within the policy.
	Rule string `json:"rule"`
	// Action is the type of the rule's action, such as agent or http. Target is the action's target: the name of the
	// agent, tool, pipeline or func, the program, the host. Both are empty for a rule with a decision. Target is empty
	// for an action without a target.
	Action string `json:"action,omitempty"`
	Target string `json:"target,omitempty"`
	// Required reports whether the policy is required. No inner layer can switch it off. Only rules from required
	// policies in the same layer or an outer one can answer its questions for a person.
	Required bool `json:"required,omitempty"`
	// OnFailure is the file's word for handling a failure, such as block or ignore. It is empty for the default.
	OnFailure string `json:"on_failure,omitempty"`
	// Layer is the policy's layer. The outermost is 0.
	Layer int `json:"-"`
	// File and Line are the rule's position. Lines count from one.
	File string `json:"file"`
	Line int    `json:"line"`
}
