package action

// Callbacks listens for gates that wait for a callback.
type Callbacks struct{}
