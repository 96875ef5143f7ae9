package liqo

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
)

// endKept is the time for which CredentialsLife still reports credentials after their last use in this process.
const endKept = time.Hour

// ends remembers the validity of the credentials that this process uses. The zero value is ready for use.
type ends struct {
	mu sync.Mutex
	of map[string]lifeEntry // by provider
}

type lifeEntry struct {
	life account.Life
	at   time.Time
}

// remember stores the validity of the credentials with which a client was opened. If the credentials do not expire,
// it removes the provider's entry.
func (e *ends) remember(provider string, cluster client.Client, now time.Time) {
	p, ok := cluster.(pinned)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !ok || p.life.End.IsZero() {
		delete(e.of, provider)
		return
	}
	if e.of == nil {
		e.of = map[string]lifeEntry{}
	}
	e.of[provider] = lifeEntry{life: p.life, at: now}
}

func (e *ends) all(now time.Time) map[string]account.Life {
	e.mu.Lock()
	defer e.mu.Unlock()
	lives := map[string]account.Life{}
	for provider, n := range e.of {
		if now.Sub(n.at) > endKept {
			delete(e.of, provider)
			continue
		}
		lives[provider] = n.life
	}
	return lives
}

// CredentialsLife returns the validity of the credentials by provider. The map contains only credentials that expire
// (tokens with an expiry, and client certificates) and that this process has used within the last hour.
func (b *Backend) CredentialsLife() map[string]account.Life { return b.ends.all(time.Now()) }
