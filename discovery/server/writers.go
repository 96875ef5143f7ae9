package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// Writer is a client with a token.
type Writer struct {
	// Name is the owner of the offers it puts.
	Name string `json:"name"`
	// TokenSHA256 is the token's SHA-256 in hex: printf %s "$TOKEN" | sha256sum. Use random tokens of 32 bytes or more;
	// a hash without salt does not protect weaker ones.
	TokenSHA256 string `json:"tokenSHA256"`
	// ReadOnly is for clients that only list, such as workers.
	ReadOnly bool `json:"readOnly,omitempty"`
	// SecretNamespaces are the namespaces that the writer's secretRefs may name; empty means any.
	SecretNamespaces []string `json:"secretNamespaces,omitempty"`
	// Providers are the Liqo cluster ids that the writer may offer; empty means any. Workers check an offer's claimed
	// provider over its credentials. With this bound, a writer can neither offer the cluster of another writer nor have
	// the other's offer ignored as a duplicate.
	Providers []string `json:"providers,omitempty"`

	sum [sha256.Size]byte
}

// Authenticator knows who may come in.
type Authenticator interface {
	// Authenticate returns the writer of a token.
	Authenticate(token string) (Writer, bool)
	// Current are all writers.
	Current() Writers
}

// Writers are an Authenticator.
type Writers []Writer

// Authenticate takes the same time for every writer and for unknown tokens.
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

// Current implements Authenticator.
func (ws Writers) Current() Writers { return ws }

// inForce reports whether an offer is in force: its writer is known, and may still put it. Those of a writer that is
// removed are not, from then on.
func inForce(writers Writers) func(store.Record) bool {
	known := make(map[string]Writer, len(writers))
	for _, w := range writers {
		known[w.Name] = w
	}
	return func(r store.Record) bool {
		w, ok := known[r.Writer]
		return ok && !w.ReadOnly && w.allow(r.Offer) == nil
	}
}

// ParseWriters reads a YAML or JSON document "writers: [{name, tokenSHA256, readOnly, secretNamespaces, providers}]".
// The error lists all faults by path.
func ParseWriters(document []byte) (Writers, error) {
	var doc struct {
		Writers []Writer `json:"writers"`
	}
	tree, faults, err := strictyaml.Unmarshal(document, &doc)
	if err != nil {
		return nil, err
	}
	written, _ := tree["writers"].([]any)
	names, sums := map[string]bool{}, map[string]bool{}
	for i := range doc.Writers {
		w, path := &doc.Writers[i], fmt.Sprintf("writers[%d]", i)
		sum, err := hex.DecodeString(w.TokenSHA256)
		if err != nil || len(sum) != sha256.Size {
			faults.Add(path+".tokenSHA256", "must be 64 hex digits: the SHA-256 of the token, never the token")
		}
		copy(w.sum[:], sum)
		if isEmpty(written[i], "secretNamespaces", len(w.SecretNamespaces)) {
			faults.Add(path+".secretNamespaces", "is empty: name the namespaces, or leave it out to allow any")
		}
		if isEmpty(written[i], "providers", len(w.Providers)) {
			faults.Add(path+".providers", "is empty: name the cluster ids, or leave it out to allow any")
		}
		switch {
		case w.Name == "":
			faults.Add(path+".name", "is missing")
		case names[w.Name]:
			faults.Add(path+".name", "%q is the name of another writer", w.Name)
		case sums[strings.ToLower(w.TokenSHA256)]:
			faults.Add(path+".tokenSHA256", "is the token of another writer")
		}
		names[w.Name], sums[strings.ToLower(w.TokenSHA256)] = true, true
	}
	if err := faults.Locate(document).Err(); err != nil {
		return nil, err
	}
	return doc.Writers, nil
}

// isEmpty reports whether the key is written without a value, as a template with an empty value leaves it.
func isEmpty(writer any, key string, values int) bool {
	members, _ := writer.(map[string]any)
	_, ok := members[key]
	return ok && values == 0
}

// WritersFile is an Authenticator that follows a file. A version that cannot be read or parsed authenticates nobody: a
// revoked token must not stay valid because of a mistake elsewhere in the file.
type WritersFile struct{ files *reload.Files[Writers] }

// OpenWriters reads the file for the first time; a fault is an error.
func OpenWriters(path string) (*WritersFile, error) {
	files, err := reload.Open(func(contents [][]byte) (Writers, error) { return ParseWriters(contents[0]) }, path)
	if err != nil {
		return nil, fmt.Errorf("open writers file %s: %w", path, err)
	}
	return &WritersFile{files}, nil
}

// Authenticate implements Authenticator.
func (f *WritersFile) Authenticate(token string) (Writer, bool) {
	return f.Current().Authenticate(token)
}

// Current implements Authenticator; of a file with a fault it is nobody.
func (f *WritersFile) Current() Writers {
	writers, _, err := f.files.Get()
	if err != nil {
		return nil
	}
	return writers
}

// Err returns what is wrong with the file now.
func (f *WritersFile) Err() error {
	_, _, err := f.files.Get()
	return err
}
