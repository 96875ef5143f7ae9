package pair

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/providers"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// document is the output of setup provider and the input of setup consumer. It contains a token, so it must be kept
// secret.
type document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Consumer   string   `json:"consumer"`
	Provider   identity `json:"provider"`
	Access     access   `json:"access"`
	Offer      offer    `json:"offer"`
}

// access contains the parts of the consumer's kubeconfig that come from the provider.
type access struct {
	Server    string `json:"server"`
	Authority string `json:"certificateAuthority"`
	Token     string `json:"token"`
}

const (
	documentVersion = "liqo-autoscaler.io/v1"
	documentKind    = "ProviderAccess"
	maxDocument     = 1 << 20
)

// kubeconfig returns a kubeconfig with the offer's credentials. It is built only from the fields of access, so the
// provider cannot make the consumer run programs or read files.
func (d document) kubeconfig() ([]byte, error) {
	return providers.Kubeconfig(d.Access.Server, []byte(d.Access.Authority), d.Consumer, d.Access.Token)
}

// write returns the document as YAML.
func (d document) write() ([]byte, error) {
	d.APIVersion, d.Kind = documentVersion, documentKind
	raw, err := yaml.Marshal(d)
	if err != nil {
		return nil, err
	}
	return append([]byte("# From liqo-autoscaler setup provider. It contains a token: keep it secret, delete it after "+
		"use.\n"),
		raw...), nil
}

// readDocument reads and checks a document. Its errors do not quote the document.
func readDocument(raw []byte) (d document, err error) {
	if len(raw) > maxDocument {
		return d, errors.New("--from: the document has more than 1 MiB: give the output of setup provider")
	}
	tree, _, err := strictyaml.Read(raw)
	if err != nil || tree["kind"] != documentKind || tree["apiVersion"] != documentVersion {
		return d, fmt.Errorf("--from: this is not a %s of %s: give the output of setup "+
			"provider", documentKind, documentVersion)
	}
	if faults := strictyaml.Decode(tree, &d); len(faults) > 0 {
		var paths []string
		for _, fault := range faults {
			paths = append(paths, fault.Path)
		}
		return d, fmt.Errorf("--from: the document has wrong fields (%s): create it again with setup provider",
			strings.Join(paths, ", "))
	}
	return d, d.check()
}

func (d document) check() error {
	if err := checkServer("--from: access.server", d.Access.Server); err != nil {
		return err
	}
	if block, _ := pem.Decode(bytes.TrimSpace([]byte(d.Access.Authority))); d.Access.Authority != "" && block == nil {
		return errors.New("--from: access.certificateAuthority is not PEM: create the document again with setup provider")
	}
	if _, _, err := account.Of(d.Access.Token); err != nil {
		return errors.New("--from: access.token is not a token of a ServiceAccount: create the document again with setup " +
			"provider")
	}
	if d.Offer.Provider != d.Provider.ID {
		return fmt.Errorf("--from: offer.provider is not provider.id: create the document again with setup provider")
	}
	return nil
}
