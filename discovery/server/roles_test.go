package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// A consumer receives the offers to this consumer and the offers to all consumers. A provider receives its own
// offers, and an administrator (readOnly) receives all offers. This applies to lists, to pages, and to a single offer
// by its name.
func TestEachRoleReceivesItsOffers(t *testing.T) {
	keep := onSQLite(t).open(t)
	r := newRig(t, keep)
	rows := []string{}
	for _, w := range []string{"name: a", "name: b", "name: munich, consumer: munich", "name: turin, consumer: turin",
		"name: admin, readOnly: true"} {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "name: "), ",")
		rows = append(rows, fmt.Sprintf("{%s, tokenSHA256: %s}", w, hash("token-of-"+name)))
	}
	writers, err := ParseWriters([]byte("writers: [" + strings.Join(rows, ", ") + "]"))
	require.NoError(t, err)
	r.serve(Options{Store: keep, Writers: writers})
	for name, by := range map[string]string{"for-munich": "a", "for-turin": "a", "for-all": "a", "of-b": "b"} {
		offer := strings.Replace(goodOffer, `"name":"milan"`, `"name":"`+name+`"`, 1)
		if to, ok := strings.CutPrefix(name, "for-"); ok && to != "all" {
			offer = strings.Replace(offer, `{`, `{"consumer":"`+to+`",`, 1)
		}
		require.Equal(t, 201, r.do("PUT", "/v1/offers/"+name, "token-of-"+by, offer).status)
	}
	for who, want := range map[string][]string{
		"munich": {"for-all", "for-munich", "of-b"},
		"turin":  {"for-all", "for-turin", "of-b"},
		"a":      {"for-all", "for-munich", "for-turin"},
		"b":      {"of-b"},
		"admin":  {"for-all", "for-munich", "for-turin", "of-b"},
	} {
		var listed, got []string
		after := ""
		for {
			var page api.List
			answer := r.do("GET", "/v1/offers?limit=1&after="+after, "token-of-"+who, "")
			require.NoError(t, json.Unmarshal(answer.body, &page))
			for _, o := range page.Items {
				listed = append(listed, o.Name)
			}
			if after = page.Next; after == "" {
				break
			}
		}
		for _, name := range []string{"for-all", "for-munich", "for-turin", "of-b"} {
			if r.do("GET", "/v1/offers/"+name, "token-of-"+who, "").status == 200 {
				got = append(got, name)
			}
		}
		require.Equal(t, want, listed, who)
		require.Equal(t, want, got, who)
	}
	for _, who := range []string{"munich", "admin"} {
		require.Equal(t, 403, r.do("PUT", "/v1/offers/milan", "token-of-"+who, goodOffer).status)
		require.Equal(t, 403, r.do("DELETE", "/v1/offers/for-all", "token-of-"+who, "").status)
	}
}
