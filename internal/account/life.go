package account

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"k8s.io/client-go/rest"
)

// Life is the time in which credentials are valid. Begin is zero if it is not known. Both are zero for credentials
// without an end.
type Life struct{ Begin, End time.Time }

// warnBefore is the longest time between the first warning and the end of credentials.
const warnBefore = 14 * 24 * time.Hour

// LifeOf returns the life of an access: of its token or its client certificate, the credential that expires first.
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

// LifeOfToken returns the life that a token claims; zero when the token claims no end.
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

// Due returns the time from which credentials are renewed: when a third of their life has passed. Renewals may then
// fail for another third of the life before Late. Credentials without a known beginning are due immediately. Due is
// zero for credentials without an end.
func (l Life) Due() time.Time {
	if l.Begin.IsZero() {
		return l.Begin
	}
	return l.Begin.Add(l.End.Sub(l.Begin) / 3)
}

// Late returns the time from which people are warned: when a third of the life is left, or 14 days if that is less.
// Late is zero for credentials without an end.
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
