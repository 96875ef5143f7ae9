package account

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"k8s.io/client-go/rest"
)

// Life is the period in which credentials are valid. Begin is zero if it is unknown. Both fields are zero for
// credentials that do not expire.
type Life struct{ Begin, End time.Time }

// warnBefore is the maximum time between the first warning and the time at which the credentials expire.
const warnBefore = 14 * 24 * time.Hour

// LifeOf returns the period in which the credentials in access are valid. The credentials are a token or a client
// certificate. If access contains both, LifeOf returns the period that ends first.
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

// LifeOfToken returns the period in which a token is valid, according to its claims. It returns the zero Life if the
// token does not expire or cannot be read.
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

// Due returns the time from which credentials should be renewed: the time at which a third of their period has
// passed. Renewals can then fail for another third of the period before the time that Late returns. If the beginning
// of the period is unknown, Due returns the zero time, so that a renewal is due immediately. Due also returns the
// zero time for credentials that do not expire.
func (l Life) Due() time.Time {
	if l.Begin.IsZero() {
		return l.Begin
	}
	return l.Begin.Add(l.End.Sub(l.Begin) / 3)
}

// Late returns the time from which an operator should be warned. This is the time at which a third of the period is
// left, but not earlier than 14 days before the end. Late returns the zero time for credentials that do not expire.
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
