// Package file is the Source of offers that are written in one YAML (or JSON) file:
//
//	offers:
//	- name: milan
//	  credentials: {kubeconfigFile: milan.kubeconfig}   # relative to this file; or secretRef: {namespace, name, key}
//	  lendable: {cpu: "16", memory: 64Gi, pods: "110"}
//	  maxNodes: 4
//	  labels: {country: it}
//	  price: 0.12
//	  lingerSeconds: 60
//	  unpeer: linger            # or never
//	  expires: 2027-01-01T00:00:00Z
//
// The file is read on every List, so an edit, or a ConfigMap or Secret volume swapped by the kubelet, is in force at
// once, without watches that can break. A new version with any fault in it is refused whole and loudly: the last good
// version keeps serving (a slip of the editor must not take every provider away) and every List carries a Problem with
// all faults until the file is mended. A file that cannot be read at all is treated the same. Kubeconfigs are not the
// file's faults: Resolve reports those offer by offer.
package file

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

const maxBytes = 4 << 20

// Source is the file.
type Source struct {
	path string

	mu     sync.Mutex
	seen   [sha256.Size]byte // the version last read, good or not
	broken error             // what is wrong with it
	offers []fleet.Offer     // of the last good version
}

// Open reads the file a first time. Here a fault is an error: at the start there is no last good version.
func Open(path string) (*Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open offers file: %w", err)
	}
	s := &Source{path: abs}
	if s.refresh(); s.broken != nil {
		return nil, fmt.Errorf("open offers file %s:\n%w", path, s.broken)
	}
	return s, nil
}

// Name implements discovery.Source.
func (s *Source) Name() string { return "file" }

// List implements discovery.Source. It never fails: see the package comment.
func (s *Source) List(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	var problems []discovery.Problem
	if s.broken != nil {
		problems = append(problems, discovery.Problem{
			Source:  s.Name(),
			Message: fmt.Sprintf("%s is refused, its last good version still serves:\n%v", filepath.Base(s.path), s.broken),
		})
	}
	offers := make([]fleet.Offer, len(s.offers))
	for i, o := range s.offers {
		offers[i] = discovery.CopyOffer(o)
	}
	return offers, problems, nil
}

func (s *Source) refresh() {
	document, err := read(s.path)
	if err != nil {
		s.seen, s.broken = [sha256.Size]byte{}, err
		return
	}
	sum := sha256.Sum256(document)
	if sum == s.seen {
		return
	}
	s.seen, s.broken = sum, nil
	parsed, err := discovery.Parse(document)
	if err != nil {
		s.broken = err
		return
	}
	s.offers = make([]fleet.Offer, 0, len(parsed.Offers))
	for _, spec := range parsed.Offers {
		o := spec.Offer()
		if f := o.Credentials.KubeconfigFile; f != "" && !filepath.IsAbs(f) {
			o.Credentials.KubeconfigFile = filepath.Join(filepath.Dir(s.path), f)
		}
		s.offers = append(s.offers, o)
	}
	slices.SortFunc(s.offers, func(a, b fleet.Offer) int { return cmp.Compare(a.Name, b.Name) })
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	document, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(document) > maxBytes {
		return nil, fmt.Errorf("%s is larger than 4 MiB", path)
	}
	return document, err
}
