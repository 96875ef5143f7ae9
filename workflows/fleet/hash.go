package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Hash is a short fingerprint of the spec: equal specs have equal hashes, whatever the order of their maps.
func (s GroupSpec) Hash() string {
	b, err := json.Marshal(s)
	if err != nil { // a GroupSpec holds nothing that cannot be marshalled
		panic(fmt.Sprintf("marshal group spec %q: %v", s.ID, err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// SameTemplate tells whether nodes of both specs are alike: kind, shape, labels and taints. CA may keep what it has
// learnt of a group's nodes as long as it runs (CA processors/nodeinfosprovider/mixed_nodeinfos_processor.go), so these
// must not change under one id.
func (s GroupSpec) SameTemplate(o GroupSpec) bool {
	return GroupSpec{}.WithTemplateOf(s).Hash() == GroupSpec{}.WithTemplateOf(o).Hash()
}

// WithTemplateOf is s with the kind, shape, labels and taints of o.
func (s GroupSpec) WithTemplateOf(o GroupSpec) GroupSpec {
	s.Nodes, s.Shape, s.Labels, s.Taints, s.GroupTaint = o.Nodes, o.Shape, o.Labels, o.Taints, o.GroupTaint
	return s
}
