package activities

// For tests: how long a step waits after a pass.
var AgainAfter = againAfter

const (
	SoonAgain  = soonAgain
	LaterAgain = laterAgain
)
