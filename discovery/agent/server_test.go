package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// site is a discovery server with its own clock. A test can make it unavailable.
type site struct {
	agent, reader *client.Client
	source        *client.Source
	web           *httptest.Server

	mu   sync.Mutex
	down bool
	ours time.Duration // lead of the server's clock over all other clocks
}

func (s *site) set(down bool, ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.ours = down, ahead
}

func newSite(t *testing.T, ahead time.Duration) *site {
	t.Helper()
	s := &site{ours: ahead}
	hash := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return hex.EncodeToString(sum[:])
	}
	writers, err := server.ParseWriters(fmt.Appendf(nil, "writers: [{name: milan, tokenSHA256: %s, "+
		"providers: [milan-1]}, {name: worker, tokenSHA256: %s, readOnly: true}]", hash("agent"), hash("reader")))
	require.NoError(t, err)
	clock := func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Now().Add(s.ours)
	}
	real, err := server.New(server.Options{Store: storetest.At(storetest.New(t), clock), Writers: writers, Log: quiet})
	require.NoError(t, err)
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		down := s.down && r.Method != http.MethodGet
		s.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s.web = web
	s.agent, s.reader = s.client(t, web, "agent"), s.client(t, web, "reader")
	s.source, err = client.NewSource(s.reader)
	require.NoError(t, err)
	return s
}

func (s *site) client(t *testing.T, web *httptest.Server, token string) *client.Client {
	t.Helper()
	dir := t.TempDir()
	ca, tokenFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	require.NoError(t, os.WriteFile(ca, authority, 0o600))
	require.NoError(t, os.WriteFile(tokenFile, []byte(token), 0o600))
	c, err := client.New(client.Options{URL: web.URL, CAFile: ca, TokenFile: tokenFile,
		SecretNamespaces: []string{"lend"}})
	require.NoError(t, err)
	return c
}

// listed returns a check that a worker sees the offer with this amount of CPU. When cpu is "", the worker must see no
// offer.
func (s *site) listed(t *testing.T, cpu string) func() error {
	return func() error {
		offers, problems, err := s.source.List(t.Context())
		if err != nil || len(problems) > 0 {
			return fmt.Errorf("%w, %v", err, problems)
		}
		offers = current(offers)
		if cpu == "" && len(offers) == 0 || len(offers) == 1 && offers[0].Lendable.Cpu().String() == cpu {
			return nil
		}
		return fmt.Errorf("listed: %v", offers)
	}
}

// current drops the offers that have expired by the reader's clock, in the same way as discovery.Resolve.
func current(offers []fleet.Offer) (left []fleet.Offer) {
	for _, o := range offers {
		if !o.Expired(time.Now()) {
			left = append(left, o)
		}
	}
	return left
}

func (s *site) start(t *testing.T, c *cluster) (a *Agent, stop func()) {
	t.Helper()
	config, _ := configFile(t, "ttlSeconds: 600"+document)
	return c.start(t, config, &Server{Client: s.agent})
}

func TestStoppedAgentWithdrawsItsOffer(t *testing.T) {
	s, c := newSite(t, 0), newCluster(node("a", amounts("8", "64Gi", "pods", "110")))
	_, stop := s.start(t, c)
	testkit.Until(t, patience, "offered", s.listed(t, "7"))
	stop()
	require.NoError(t, s.listed(t, "")())
}

// An agent is killed, and its offer expires. The server's clock is wrong by an hour, which does not change the time
// of the expiry.
func TestOfferOfAKilledAgentExpires(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		s, c := newSite(t, off), newCluster(node("a", amounts("8", "64Gi", "pods", "110")))
		_, stop := s.start(t, c)
		testkit.Until(t, patience, "offered", s.listed(t, "7"))
		s.set(true, off) // from now on the agent's requests are lost
		stop()
		require.NoError(t, s.listed(t, "7")(), "it has withdrawn nothing")
		s.set(true, off+20*time.Minute)
		require.NoError(t, s.listed(t, "")())
	}
}

// An agent sends requests after another agent has taken the lead. These requests change nothing, and the first agent
// gives up its lead.
func TestAgentGivesUpItsLeadToANewerAgent(t *testing.T) {
	s := newSite(t, 0)
	offer := func(cpu string) api.Posted {
		config, _ := configFile(t, document)
		c, _, err := config.Get()
		require.NoError(t, err)
		return c.Offers[0].Post(c.Provider, amounts(cpu, "1Gi"))
	}
	first, second := &Server{Client: s.agent}, &Server{Client: s.agent}
	require.NoError(t, first.Put(t.Context(), offer("1"), time.Minute))
	require.NoError(t, second.Put(t.Context(), offer("2"), time.Minute))
	require.ErrorIs(t, first.Withdraw(t.Context(), "milan"), client.ErrSession)
	require.ErrorIs(t, first.Put(t.Context(), offer("1"), time.Minute), errPaused)
	require.ErrorIs(t, first.Withdraw(t.Context(), "milan"), errPaused)
	require.NoError(t, s.listed(t, "2")())
	first.Restart() // the first agent leads again
	require.NoError(t, first.Put(t.Context(), offer("1"), time.Minute))
	require.NoError(t, s.listed(t, "1")())
}

// The database of a server was restored from a backup, so the server issues a session number a second time, and two
// agents write in one session. The newer agent notices the other agent's write, and continues in a new session.
func TestSessionNumberIssuedTwiceIsDetected(t *testing.T) {
	s := newSite(t, 0)
	config, _ := configFile(t, document)
	c, _, err := config.Get()
	require.NoError(t, err)
	offer, agent := c.Offers[0].Post(c.Provider, amounts("1", "1Gi")), &Server{Client: s.agent}
	require.NoError(t, agent.Put(t.Context(), offer, time.Minute))
	late, err := http.NewRequestWithContext(t.Context(), http.MethodDelete,
		s.agent.URL()+"/v1/offers/another?session=1&sequence=1000", http.NoBody)
	require.NoError(t, err)
	late.Header.Set("Authorization", "Bearer agent")
	answer, err := s.web.Client().Do(late)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNoContent, answer.StatusCode)

	require.ErrorIs(t, agent.Put(t.Context(), offer, time.Minute), client.ErrReplayed)
	require.NoError(t, agent.Put(t.Context(), offer, time.Minute), "in a session of its own")
}

func TestRecoveredServerReceivesTheCurrentOffer(t *testing.T) {
	s, c := newSite(t, 0), newCluster(node("a", amounts("8", "64Gi", "pods", "110")))
	a, _ := s.start(t, c)
	testkit.Until(t, patience, "offered", s.listed(t, "7"))
	s.set(true, 0)
	_, err := c.kube.CoreV1().Pods("default").Create(t.Context(), pod("p", "a", amounts("2", "1Gi")),
		metav1.CreateOptions{})
	require.NoError(t, err)
	testkit.Until(t, patience, "the agent notices", func() error {
		if a.Advertised() == nil {
			return fmt.Errorf("it says that all is well")
		}
		return nil
	})
	s.set(true, 20*time.Minute)
	require.NoError(t, s.listed(t, "")(), "what it had is over")
	s.set(false, 0)
	testkit.Until(t, patience, "offered again", s.listed(t, "5"))
	testkit.Until(t, patience, "all is well", a.Advertised)
}
