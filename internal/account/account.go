// Package account reads the claims in bearer tokens and client certificates. It verifies nothing: the claims are for
// people, and for the choice of requests to the API server, which verifies the credentials.
package account

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// claims holds the claims of a ServiceAccount's token that we use.
type claims struct {
	Subject string `json:"sub"`
	Expires int64  `json:"exp"` // Unix seconds, as is Issued
	Issued  int64  `json:"iat"`
}

var errNoAccount = errors.New("the token is none of a ServiceAccount")

func read(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return c, err == nil && json.Unmarshal(payload, &c) == nil
}

// Of returns the ServiceAccount that the token names.
func Of(token string) (namespace, name string, err error) {
	c, ok := read(token)
	account, isAccount := strings.CutPrefix(c.Subject, "system:serviceaccount:")
	namespace, name, both := strings.Cut(account, ":")
	if !ok || !isAccount || !both {
		return "", "", errNoAccount
	}
	return namespace, name, nil
}
