package activities

// AgainAfter gives tests the time that a step waits after a pass.
var AgainAfter = againAfter

const (
	SoonAgain  = soonAgain
	LaterAgain = laterAgain
)
