package activities

// AgainAfter gives tests the time that a step waits after a pass.
var AgainAfter = retryDelay

const (
	SoonAgain  = stepDelay
	LaterAgain = removalDelay
)
