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

func TestEnd(t *testing.T) {
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
		require.WithinDuration(t, test.want, account.End(&test.access), 0, name)
	}
}

func TestOf(t *testing.T) {
	namespace, name, err := account.Of(token(`{"sub": "system:serviceaccount:liqo-autoscaler:consumer-rome"}`))
	require.NoError(t, err)
	require.Equal(t, []string{"liqo-autoscaler", "consumer-rome"}, []string{namespace, name})
	for _, none := range []string{"", "s3cret", token(`{"sub": "alice"}`), token(`{"sub": "system:serviceaccount:x"}`)} {
		_, _, err := account.Of(none)
		require.Error(t, err)
	}
}
