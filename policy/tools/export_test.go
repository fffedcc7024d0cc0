package tools

// AllEffects lists all effects.
var AllEffects = effects
