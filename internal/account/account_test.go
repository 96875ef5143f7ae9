package account_test

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func token(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestExpiryOfCredentials(t *testing.T) {
	certificate := testkit.NewAuthority(t).Issue(t)
	validity := certificate.Cert.NotAfter
	early := validity.Add(-time.Minute).Truncate(time.Second)
	for name, test := range map[string]struct {
		access rest.Config
		want   time.Time
	}{
		"nothing":           {},
		"no JWT":            {access: rest.Config{BearerToken: "s3cret"}},
		"no claims":         {access: rest.Config{BearerToken: "a.b.c"}},
		"token without end": {access: rest.Config{BearerToken: token(`{"sub": "x"}`)}},
		"no certificate":    {access: rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}},
		"token":             {rest.Config{BearerToken: token(`{"exp": 1800000000}`)}, time.Unix(1800000000, 0)},
		"certificate":       {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate.PEM()}}, validity},
		"the first of both": {rest.Config{BearerToken: token(fmt.Sprintf(`{"exp": %d}`, early.Unix())),
			TLSClientConfig: rest.TLSClientConfig{CertData: certificate.PEM()}}, early},
	} {
		require.WithinDuration(t, test.want, account.LifeOf(&test.access).End, 0, name)
	}
}

// Credentials are due for renewal when a third of their validity has passed. They are late when only a third of their
// validity is left. If this third is longer than 14 days, they are late 14 days before they expire.
func TestCredentialsAreDueAndLate(t *testing.T) {
	const day = 24 * time.Hour
	begin := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		life      account.Life
		due, late time.Duration // after the start of the validity
	}{
		"a day":       {account.Life{Begin: begin, End: begin.Add(day)}, 8 * time.Hour, 16 * time.Hour},
		"ten minutes": {account.Life{Begin: begin, End: begin.Add(10 * time.Minute)}, 200 * time.Second, 400 * time.Second},
		"90 days":     {account.Life{Begin: begin, End: begin.Add(90 * day)}, 30 * day, 76 * day},
		"a year":      {account.Life{Begin: begin, End: begin.Add(360 * day)}, 120 * day, 346 * day},
	} {
		require.Equal(t, begin.Add(test.due), test.life.Due(), name)
		require.Equal(t, begin.Add(test.late), test.life.Late(), name)
	}
	unknown := account.Life{End: begin}
	require.True(t, unknown.Due().IsZero(), "immediately")
	require.Equal(t, begin.Add(-14*day), unknown.Late())
	require.True(t, account.Life{}.Late().IsZero(), "they have no end")
	said := account.LifeOfToken(token(`{"iat": 1800000000, "exp": 1800000600}`))
	require.Equal(t, account.Life{Begin: begin, End: begin.Add(10 * time.Minute)}, said)
	require.Equal(t, account.Life{End: begin}, account.LifeOfToken(token(`{"iat": 1800000001, "exp": 1800000000}`)))
}

func TestServiceAccountIsReadFromItsToken(t *testing.T) {
	namespace, name, err := account.Of(token(`{"sub": "system:serviceaccount:liqo-autoscaler:consumer-rome"}`))
	require.NoError(t, err)
	require.Equal(t, []string{"liqo-autoscaler", "consumer-rome"}, []string{namespace, name})
	for _, none := range []string{"", "s3cret", token(`{"sub": "alice"}`), token(`{"sub": "system:serviceaccount:x"}`)} {
		_, _, err := account.Of(none)
		require.Error(t, err)
	}
}
