// Package account reads the claims in bearer tokens and client certificates. It does not verify signatures. Therefore
// a caller may use the claims for two purposes only: to show them to people, and to choose its next request. The API
// server verifies the credentials of that request.
package account

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// claims holds the claims of a ServiceAccount's token that this package uses. The times are in Unix seconds.
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

// Of returns the namespace and the name of the ServiceAccount to which the token belongs. It returns an error if the
// token does not belong to a ServiceAccount.
func Of(token string) (namespace, name string, err error) {
	c, ok := read(token)
	account, isAccount := strings.CutPrefix(c.Subject, "system:serviceaccount:")
	namespace, name, both := strings.Cut(account, ":")
	if !ok || !isAccount || !both {
		return "", "", errNoAccount
	}
	return namespace, name, nil
}
