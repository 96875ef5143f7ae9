// Package comparison judges a round of the observer of what exists with what is booked. It answers which rows of an
// entity differ, what is wrong with each provider, which instances are lost with theirs, and what is left on providers
// that nothing here stands for, from what this round and those before it have seen of the whole hub.
// It is pure and keeps nothing: the rounds carry what they must remember, and entities judge what they are told.
package comparison
