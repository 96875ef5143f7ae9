package discovery

import (
	"encoding/json"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// ContractVersion is the version of the data that a provider's agent and a consumer exchange. These are the offer in
// the ConfigMap PublishedName, and the requests and responses of the discovery server. Agent and consumer belong to
// different organisations and are upgraded at different times.
//
// Each release that adds a field increases the version by one. A writer sets Requires only if a reader that does not
// know the field would act wrongly.
const ContractVersion = 1

// Contract holds the versions of a document. A reader ignores unknown fields if the version of the document is later
// than the reader's own version.
type Contract struct {
	// Version is the ContractVersion of the program that wrote the document; 0 or absent means 1.
	Version int `json:"contract,omitempty"`
	// Requires is the ContractVersion that a reader must have at least to understand the document; 0 or absent means
	// 1.
	Requires int `json:"requiresContract,omitempty"`
}

// ContractOf decodes only the version fields of a document, because a later version may have changed the other fields.
func ContractOf(document []byte) (c Contract) {
	_ = json.Unmarshal(document, &c) // the caller also decodes the document, and reports that error
	return c
}

// Later reports whether the document may have fields that this build does not know.
func (c Contract) Later() bool { return c.Version > ContractVersion }

// VersionFaults returns the faults of the version fields. It is a fault if the document requires a later contract,
// because the fields that the reader knows could mislead the reader.
func (c Contract) VersionFaults() (faults strictyaml.Faults) {
	if c.Version < 0 {
		faults.Add("contract", "is %d: versions start at 1", c.Version)
	}
	if c.Requires < 0 {
		faults.Add("requiresContract", "is %d: versions start at 1", c.Requires)
	}
	if c.Requires > ContractVersion {
		faults.Add("requiresContract", "is %d, but this liqo-autoscaler knows contract %d: upgrade it in the cluster that "+
			"reads the offer", c.Requires, ContractVersion)
	}
	return faults
}
