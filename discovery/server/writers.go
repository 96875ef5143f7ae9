package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/internal/strict"
)

// Writer is somebody with a token.
type Writer struct {
	// Name owns offers.
	Name string `json:"name"`
	// TokenSHA256 is the token's SHA-256 in hex: printf %s "$TOKEN" | sha256sum. Tokens are to be random, 32 bytes or
	// more; a hash without salt protects nothing less.
	TokenSHA256 string `json:"tokenSHA256"`
	// ReadOnly is for those who only list, such as workers.
	ReadOnly bool `json:"readOnly,omitempty"`
	// SecretNamespaces bounds where the writer's secretRefs may lead; empty means anywhere.
	SecretNamespaces []string `json:"secretNamespaces,omitempty"`
	// Providers bounds which clusters the writer may offer, by Liqo cluster id; empty means any. What an offer says of its
	// provider is checked by those who use it, over its credentials: so bounded, a writer can neither offer another's cluster
	// nor have that one's offer left out because there are two.
	Providers []string `json:"providers,omitempty"`

	sum [sha256.Size]byte
}

// Authenticator knows who a token belongs to.
type Authenticator interface {
	Authenticate(token string) (Writer, bool)
}

// Writers are an Authenticator.
type Writers []Writer

// Authenticate takes the same time whichever writer it is, or none.
func (ws Writers) Authenticate(token string) (Writer, bool) {
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range ws {
		if subtle.ConstantTimeCompare(sum[:], ws[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Writer{}, false
	}
	return ws[found], true
}

// ParseWriters reads a YAML or JSON document "writers: [{name, tokenSHA256, readOnly, secretNamespaces, providers}]". The error
// lists all faults by path.
func ParseWriters(document []byte) (Writers, error) {
	var doc struct {
		Writers []Writer `json:"writers"`
	}
	faults := strict.Decode(document, &doc)
	bounds := boundsOf(document, len(doc.Writers))
	names, sums := map[string]bool{}, map[string]bool{}
	for i := range doc.Writers {
		w, path := &doc.Writers[i], fmt.Sprintf("writers[%d]", i)
		sum, err := hex.DecodeString(w.TokenSHA256)
		if err != nil || len(sum) != sha256.Size {
			faults.Add(path+".tokenSHA256", "must be 64 hex digits: the SHA-256 of the token, never the token")
		}
		copy(w.sum[:], sum)
		if bounds[i].empty("secretNamespaces", len(w.SecretNamespaces)) {
			faults.Add(path+".secretNamespaces", "is empty: name the namespaces, or leave it out, which means anywhere")
		}
		if bounds[i].empty("providers", len(w.Providers)) {
			faults.Add(path+".providers", "is empty: name the cluster ids, or leave it out, which means any")
		}
		switch {
		case w.Name == "":
			faults.Add(path+".name", "is missing")
		case names[w.Name]:
			faults.Add(path+".name", "%q is there twice", w.Name)
		case sums[strings.ToLower(w.TokenSHA256)]:
			faults.Add(path+".tokenSHA256", "is that of another writer")
		}
		names[w.Name], sums[strings.ToLower(w.TokenSHA256)] = true, true
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return doc.Writers, nil
}

// written are the keys of one writer as they stand in the document.
type written map[string]any

// empty tells whether the key is there with nothing behind it, as a template with an empty value leaves it.
func (w written) empty(key string, values int) bool {
	_, there := w[key]
	return there && values == 0
}

// boundsOf reads what strict.Decode has read: what that refused, which may be too large to decode, has no writers.
func boundsOf(document []byte, writers int) []written {
	if writers == 0 {
		return nil
	}
	var doc struct {
		Writers []written `json:"writers"`
	}
	if err := yaml.Unmarshal(document, &doc); err != nil || len(doc.Writers) != writers { // strict.Decode has said what is wrong
		return make([]written, writers)
	}
	return doc.Writers
}

// WritersFile is an Authenticator that follows a file. A version that cannot be read or parsed lets nobody in: a token
// that was revoked must not live on because of a slip elsewhere in the file.
type WritersFile struct {
	path string

	mu      sync.Mutex
	seen    [sha256.Size]byte
	writers Writers
	err     error
}

// OpenWriters reads the file a first time; a fault is an error.
func OpenWriters(path string) (*WritersFile, error) {
	f := &WritersFile{path: path}
	if _, err := f.current(); err != nil {
		return nil, fmt.Errorf("open writers file %s: %w", path, err)
	}
	return f, nil
}

// Authenticate implements Authenticator.
func (f *WritersFile) Authenticate(token string) (Writer, bool) {
	writers, err := f.current()
	if err != nil {
		return Writer{}, false
	}
	return writers.Authenticate(token)
}

// Err says what is wrong with the file now.
func (f *WritersFile) Err() error {
	_, err := f.current()
	return err
}

func (f *WritersFile) current() (Writers, error) {
	document, err := os.ReadFile(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.seen, f.err = [sha256.Size]byte{}, err
		return nil, err
	}
	if sum := sha256.Sum256(document); sum != f.seen {
		f.seen = sum
		f.writers, f.err = ParseWriters(document)
	}
	return f.writers, f.err
}

type role int

const (
	reader role = iota
	writer
)

// as lets in who has a token with the right to do it.
func (s *Server) as(need role, handle func(http.ResponseWriter, *http.Request, Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		who, ok := Writer{}, false
		if strings.EqualFold(scheme, "Bearer") && token != "" {
			who, ok = s.options.Writers.Authenticate(strings.TrimSpace(token))
		}
		switch {
		case !ok:
			w.Header().Set("WWW-Authenticate", `Bearer realm="liqo-autoscaler discovery"`)
			s.fail(w, r, problem(http.StatusUnauthorized, "", "send Authorization: Bearer <token> with a token this server knows"))
		case need == writer && who.ReadOnly:
			s.fail(w, r, problem(http.StatusForbidden, "", "this token may only read"))
		default:
			if err := handle(w, r, who); err != nil {
				s.fail(w, r, err)
			}
		}
	}
}
