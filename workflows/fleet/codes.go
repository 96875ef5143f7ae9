package fleet

// Codes lists every code, in the order of their constants, for whoever counts failures.
var Codes = []Code{
	CodeNoOffer, CodeNoCapacity, CodeRefused, CodeUnreachable, CodeTimeout, CodeCancelled, CodeSpending, CodePaused,
	CodeNoRoom, CodeLost, CodeInternal,
}
