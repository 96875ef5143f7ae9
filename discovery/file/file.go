// Package file is the Source of offers that are written in one YAML (or JSON) file:
//
//	offers:
//	- name: milan
//	  credentials: {kubeconfigFile: milan.kubeconfig}   # relative to this file; or secretRef: {namespace, name, key}
//	  lendable: {cpu: "16", memory: 64Gi, pods: "110"}
//	  provider: milan-1         # optional: the cluster id that the credentials must lead to
//	  maxNodes: 4
//	  labels: {country: it}
//	  price: 0.12               # per node and hour; or prices, by resource: {cpu: 0.03, memory: 0.004}
//	  lingerSeconds: 60
//	  unpeer: linger            # or never
//	  expires: 2027-01-01T00:00:00Z
//
// Every List reads the file (package reload). Therefore a change takes effect immediately, also when the kubelet
// updates a ConfigMap or Secret volume. If a new version has a fault, it is refused as a whole, and the last valid
// version stays in use. So a mistake in the file does not remove every provider. Until the file is valid again, every
// List returns a Problem with all faults. An unreadable file is treated like a file with faults. Faults in a
// kubeconfig are not faults of the file: Resolve reports them for each offer.
package file

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// Source reads offers from one file.
type Source struct {
	name, path string
	files      *reload.Files[[]fleet.Offer]
}

// Open reads the file for the first time. It returns an error if the file has faults, because an earlier version that
// could stay in use does not exist.
func Open(path string) (*Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open offers file: %w", err)
	}
	parse := func(contents [][]byte) ([]fleet.Offer, error) { return parse(contents[0], filepath.Dir(abs)) }
	files, err := reload.Open(parse, abs)
	if err != nil {
		return nil, fmt.Errorf("open offers file %s:\n%w", path, err)
	}
	return &Source{name: "file", path: abs, files: files}, nil
}

// Name implements discovery.Source.
func (s *Source) Name() string { return s.name }

// Rename sets the name of the source, which distinguishes several file sources. It must not be called while the
// source is in use.
func (s *Source) Rename(name string) { s.name = name }

// List implements discovery.Source. It never returns an error, see the package comment.
func (s *Source) List(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	latest, _, err := s.files.Get()
	var problems []discovery.Problem
	if err != nil {
		problems = append(problems, discovery.Problem{
			Source:  s.Name(),
			Message: fmt.Sprintf("%s has errors; its last valid version stays in use:\n%v", filepath.Base(s.path), err),
		})
	}
	offers := make([]fleet.Offer, len(latest))
	for i, o := range latest {
		offers[i] = discovery.CopyOffer(o)
	}
	return offers, problems, nil
}

// parse parses the document, and resolves the paths of kubeconfigs relative to dir.
func parse(document []byte, dir string) ([]fleet.Offer, error) {
	parsed, err := discovery.Parse(document)
	if err != nil {
		return nil, err
	}
	offers := make([]fleet.Offer, 0, len(parsed.Offers))
	for _, spec := range parsed.Offers {
		o := spec.Offer()
		if f := o.Credentials.KubeconfigFile; f != "" && !filepath.IsAbs(f) {
			o.Credentials.KubeconfigFile = filepath.Join(dir, f)
		}
		offers = append(offers, o)
	}
	slices.SortFunc(offers, func(a, b fleet.Offer) int { return cmp.Compare(a.Name, b.Name) })
	return offers, nil
}
