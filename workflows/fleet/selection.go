package fleet

// Selection weighs what speaks for a provider, among those that can take the node. Each part is between 0 and 1, times
// its weight, and the provider with the largest sum is chosen; the cheaper one of equals. Without a Selection the price
// alone decides.
type Selection struct {
	// Price favours the cheaper node: the lowest price there is, divided by the provider's.
	Price float64 `json:"price,omitempty" validate:"gte=0,lte=100"`
	// Warm favours a peering that is there: 1, else 0.
	Warm float64 `json:"warm,omitempty" validate:"gte=0,lte=100"`
	// Latency favours the closer provider: 1 at none, a half at 50 ms; 0 for an offer without latencyMilliseconds.
	Latency float64 `json:"latency,omitempty" validate:"gte=0,lte=100"`
	// Spread favours the provider with fewer nodes of the group: 1 for none, a half for one, a third for two.
	Spread float64 `json:"spread,omitempty" validate:"gte=0,lte=100"`
	// Pack is the opposite of Spread: 0 for none, a half for one, two thirds for two.
	Pack float64 `json:"pack,omitempty" validate:"gte=0,lte=100"`
	// Failures favours the provider that has failed the group less: 1 for no failure, a half for one of just now. A
	// failure counts half as much every 30 minutes.
	Failures float64 `json:"failures,omitempty" validate:"gte=0,lte=100"`
}

// Empty reports whether nothing is weighed.
func (s Selection) Empty() bool { return s == Selection{} }
