package account

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"k8s.io/client-go/rest"
)

// Life is the time in which credentials are valid. Begin is zero if it is unknown. Both fields are zero for credentials
// that do not expire.
type Life struct{ Begin, End time.Time }

// warnBefore is the maximum time between the first warning and the end of the credentials.
const warnBefore = 14 * 24 * time.Hour

// LifeOf returns the life of the token or of the client certificate in access. If access contains both, LifeOf returns
// the life that ends first.
func LifeOf(access *rest.Config) (life Life) {
	if access.BearerToken != "" {
		life = LifeOfToken(access.BearerToken)
	}
	if block, _ := pem.Decode(access.CertData); block != nil {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (life.End.IsZero() || certificate.NotAfter.Before(life.End)) {
			life = Life{certificate.NotBefore, certificate.NotAfter}
		}
	}
	return life
}

// LifeOfToken returns the life in the claims of a token; zero if the token has no expiry.
func LifeOfToken(token string) (life Life) {
	c, ok := read(token)
	if !ok || c.Expires <= 0 {
		return life
	}
	life.End = time.Unix(c.Expires, 0)
	if c.Issued > 0 && c.Issued < c.Expires {
		life.Begin = time.Unix(c.Issued, 0)
	}
	return life
}

// Due returns the time from which credentials should be renewed: a third of the life after its beginning. Renewals may
// then fail for another third of the life before Late warns. Due returns the zero time if the beginning is unknown
// (then the renewal is due immediately), and for credentials that do not expire.
func (l Life) Due() time.Time {
	if l.Begin.IsZero() {
		return l.Begin
	}
	return l.Begin.Add(l.End.Sub(l.Begin) / 3)
}

// Late returns the time from which an operator should be warned: a third of the life before its end, and at most 14
// days before it. Late returns the zero time for credentials that do not expire.
func (l Life) Late() time.Time {
	before := warnBefore
	if !l.Begin.IsZero() {
		before = min(before, l.End.Sub(l.Begin)/3)
	}
	if l.End.IsZero() {
		return l.End
	}
	return l.End.Add(-before)
}
