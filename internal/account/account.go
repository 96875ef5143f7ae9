// Package account reads the claims in bearer tokens and client certificates. It verifies no signature. So a caller may
// show the claims to people, or use them to choose its next request, because the API server verifies the credentials.
package account

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// claims holds the used claims of a ServiceAccount's token. The times are in Unix seconds.
type claims struct {
	Subject string `json:"sub"`
	Expires int64  `json:"exp"`
	Issued  int64  `json:"iat"`
}

var errNoAccount = errors.New("the token does not belong to a ServiceAccount")

func read(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return c, err == nil && json.Unmarshal(payload, &c) == nil
}

// Of returns the ServiceAccount in the token's subject, or an error if the subject is not a ServiceAccount.
func Of(token string) (namespace, name string, err error) {
	c, ok := read(token)
	account, isAccount := strings.CutPrefix(c.Subject, "system:serviceaccount:")
	namespace, name, both := strings.Cut(account, ":")
	if !ok || !isAccount || !both {
		return "", "", errNoAccount
	}
	return namespace, name, nil
}
