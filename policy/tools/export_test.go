package tools

// AllEffects are all effects.
var AllEffects = effects
