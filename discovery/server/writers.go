package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// Writer is a client with a token or a certificate.
type Writer struct {
	// Name identifies the client, and is stored as the owner of the offers that the client writes.
	Name string `json:"name"`
	// TokenSHA256 is the token's SHA-256 in hex: printf %s "$TOKEN" | sha256sum. The token must be random and have at
	// least 32 bytes, because a hash without salt does not protect a weaker token.
	TokenSHA256 string `json:"tokenSHA256,omitempty"`
	// Certificate is the URI in the subject alternative names of the client certificate, for example the SPIFFE id
	// spiffe://munich.example/provider/milan. A client may have a certificate, a token, or both.
	Certificate string `json:"certificate,omitempty"`
	// Consumer is set if the client is a worker of a consumer: it is the consumer's Liqo cluster id. Such a client
	// may read the offers to this consumer and the offers to all consumers. It may not write.
	Consumer string `json:"consumer,omitempty"`
	// ReadOnly is for administrators: such a client may read all offers, and may not write. A client with neither
	// ReadOnly nor Consumer may read only its own offers.
	ReadOnly bool `json:"readOnly,omitempty"`
	// SecretNamespaces are the namespaces that the secretRefs in the writer's offers may contain; empty means any
	// namespace.
	SecretNamespaces []string `json:"secretNamespaces,omitempty"`
	// Providers are the Liqo cluster ids that the writer's offers may contain; empty means any id. Workers verify the
	// provider of an offer with the offer's credentials. In addition, this bound prevents that a writer offers the
	// cluster of another writer. Workers could otherwise ignore the offer of that other writer as a duplicate.
	Providers []string `json:"providers,omitempty"`

	sum      [sha256.Size]byte
	hasToken bool
}

// Authenticator authenticates clients.
type Authenticator interface {
	// Current returns all writers.
	Current() Writers
}

// Writers is a fixed list of writers that implements Authenticator.
type Writers []Writer

// Authenticate returns the writer with this token. It takes the same time for every known token and for an unknown
// token.
func (ws Writers) Authenticate(token string) (Writer, bool) {
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range ws {
		if subtle.ConstantTimeCompare(sum[:], ws[i].sum[:]) == 1 && ws[i].hasToken {
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

// certified returns the writer whose field Certificate is one of the URIs.
func (ws Writers) certified(uris []*url.URL) (Writer, bool) {
	for _, uri := range uris {
		for _, w := range ws {
			if w.Certificate != "" && w.Certificate == uri.String() {
				return w, true
			}
		}
	}
	return Writer{}, false
}

// mayWrite reports whether the client may write offers.
func (w Writer) mayWrite() bool { return !w.ReadOnly && w.Consumer == "" }

// mayRead reports whether the client may read the offer.
func (w Writer) mayRead(r store.Record) bool {
	switch {
	case w.Consumer != "":
		return r.Offer.Consumer == "" || r.Offer.Consumer == w.Consumer
	case w.ReadOnly:
		return true
	}
	return r.Writer == w.Name
}

// inForce returns a function that reports whether an offer is valid. An offer is valid if its writer exists and still
// has the permission to write it. Therefore the offers of a removed writer are not valid.
func inForce(writers Writers) func(store.Record) bool {
	known := make(map[string]Writer, len(writers))
	for _, w := range writers {
		known[w.Name] = w
	}
	return func(r store.Record) bool {
		w, ok := known[r.Writer]
		return ok && w.mayWrite() && w.allow(r.Offer) == nil
	}
}

// ParseWriters parses a YAML or JSON document of the form "writers: [{name, tokenSHA256, certificate, consumer,
// readOnly, secretNamespaces, providers}]". The error lists all faults by path.
func ParseWriters(document []byte) (Writers, error) {
	var doc struct {
		Writers []Writer `json:"writers"`
	}
	tree, faults, err := strictyaml.Unmarshal(document, &doc)
	if err != nil {
		return nil, err
	}
	written, _ := tree["writers"].([]any)
	names, tokens, certificates := usedValues{}, usedValues{}, usedValues{}
	for i := range doc.Writers {
		w, path := &doc.Writers[i], fmt.Sprintf("writers[%d].", i)
		w.check(path, &faults)
		for _, key := range []string{"secretNamespaces", "providers"} {
			if isEmpty(written[i], key) {
				faults.Add(path+key, "is empty: list the allowed values, or remove it to allow any")
			}
		}
		names.claim(&faults, path+"name", w.Name)
		tokens.claim(&faults, path+"tokenSHA256", strings.ToLower(w.TokenSHA256))
		certificates.claim(&faults, path+"certificate", w.Certificate)
	}
	if err := faults.Locate(document).Err(); err != nil {
		return nil, err
	}
	return doc.Writers, nil
}

// check adds the faults of one entry that can be found without the other entries.
func (w *Writer) check(path string, faults *strictyaml.Faults) {
	if w.Name == "" {
		faults.Add(path+"name", "is missing")
	}
	if w.TokenSHA256 != "" || w.Certificate == "" {
		sum, err := hex.DecodeString(w.TokenSHA256)
		if err != nil || len(sum) != sha256.Size {
			faults.Add(path+"tokenSHA256", "must be 64 hex digits: the SHA-256 of the token, never the token")
		}
		w.hasToken = copy(w.sum[:], sum) == sha256.Size
	}
	if uri, err := url.Parse(w.Certificate); w.Certificate != "" && (err != nil || uri.Scheme == "") {
		faults.Add(path+"certificate", "%q is not a URI: give the certificate's URI, such as spiffe://a.example/provider/%s",
			w.Certificate, w.Name)
	}
	switch {
	case w.Consumer == "":
	case !fleet.ValidProviderID(w.Consumer):
		faults.Add(path+"consumer", "%q is not a Liqo cluster id", w.Consumer)
	case w.ReadOnly:
		faults.Add(path+"readOnly", "permits reading all offers, but consumer only the offers to one: remove one of them")
	}
}

// usedValues is the set of values of one field, such as the name, that occur in earlier entries of the file. Each
// value may occur only once.
type usedValues map[string]bool

func (t usedValues) claim(faults *strictyaml.Faults, path, value string) {
	if value != "" && t[value] {
		faults.Add(path, "belongs to another writer too")
	}
	t[value] = true
}

// isEmpty reports whether the key is present and has no value. A template with an empty value can cause this.
func isEmpty(writer any, key string) bool {
	members, _ := writer.(map[string]any)
	value, ok := members[key]
	list, _ := value.([]any)
	return ok && len(list) == 0
}

// WritersFile is an Authenticator that reads its file again when the file changes. While the file cannot be read or
// parsed, it authenticates no client. Otherwise a revoked token could stay valid because of a mistake elsewhere in
// the file.
type WritersFile struct{ files *reload.Files[Writers] }

// OpenWriters reads the file for the first time. It returns an error if the file has faults.
func OpenWriters(path string) (*WritersFile, error) {
	files, err := reload.Open(func(contents [][]byte) (Writers, error) { return ParseWriters(contents[0]) }, path)
	if err != nil {
		return nil, fmt.Errorf("open writers file %s: %w", path, err)
	}
	return &WritersFile{files}, nil
}

// Current implements Authenticator. While the file has a fault, it returns nil.
func (f *WritersFile) Current() Writers {
	writers, _, err := f.files.Get()
	if err != nil {
		return nil
	}
	return writers
}

// Err returns the reason for which the file cannot be read or parsed, or nil.
func (f *WritersFile) Err() error {
	_, _, err := f.files.Get()
	return err
}
