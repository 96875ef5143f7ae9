package fleet

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// These constants limit names. The names of an attempt's objects must have at most 50 characters: Liqo appends a
// hyphen and 12 hexadecimal digits to the slice's name to make an x509 common name, which may have at most 63
// characters (Liqo pkg/liqo-controller-manager/authentication/csr.go).
const (
	MaxGroupID    = 24
	MaxHub        = 24
	maxProviderID = 63
)

// ProviderIDScheme is the scheme of instance ids. No cloud controller manager uses this scheme, so none removes our
// Nodes.
const ProviderIDScheme = "liqo://"

// ObjectPrefix is the prefix of the names of all ResourceSlices, VirtualNodes and Nodes that this product makes, so
// that admission policies can recognise them. It abbreviates "Liqo cluster autoscaler".
const ObjectPrefix = "lca-"

// DefaultHub is the name of an installation without a configured name.
const DefaultHub = "default"

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// ValidGroupID reports whether id can name a node group: a DNS-1123 label of at most MaxGroupID characters.
func ValidGroupID(id string) bool { return len(id) <= MaxGroupID && label.MatchString(id) }

// ValidHub reports whether a name is valid for an installation: a DNS-1123 label of at most MaxHub characters. The
// name is a label value on objects and part of workflow ids.
func ValidHub(name string) bool { return len(name) <= MaxHub && label.MatchString(name) }

// ValidProviderID reports whether id can be a provider's id: a DNS-1123 label. The provider chooses the id, which
// becomes part of workflow ids, label values and metrics.
func ValidProviderID(id string) bool { return len(id) <= maxProviderID && label.MatchString(id) }

// NewEpoch returns the Unix time of start, in whole seconds, as a number in base 36. The name of an epoch is the time
// at which the group started or was reset. An instance's name contains the time of its booking in the same format. The
// ids of operations have another form (workflows/client/operation.go).
func NewEpoch(start time.Time) string { return strconv.FormatInt(start.Unix(), 36) }

// nextEpoch returns the epoch one second later. If the text is not an epoch, nextEpoch returns it unchanged.
func nextEpoch(epoch string) string {
	start, ok := EpochTime(epoch)
	if !ok {
		return epoch
	}
	return NewEpoch(start.Add(time.Second))
}

// EpochTime returns the time of an epoch, in UTC. ok is false for a text that is not an epoch.
func EpochTime(epoch string) (start time.Time, ok bool) {
	seconds, err := strconv.ParseInt(epoch, 36, 64)
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0).UTC(), true
}

// EpochBefore reports whether epoch a began before b. Epochs are numbers in base 36, so a longer text is a later
// epoch.
func EpochBefore(a, b string) bool { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) < 0 }

// InstanceName returns <group>-<booked>-<seq>. booked is the time of the booking in the format of NewEpoch. seq
// numbers the names that the epoch has assigned. A group whose history was reverted continues with an older seq, but
// with a later time. Therefore its names are new even if the group has not detected the revert. Ledger.grow assigns
// the names (operations.go).
func InstanceName(group, booked string, seq int) string {
	return fmt.Sprintf("%s-%s-%d", group, booked, seq)
}

// isInstanceOf reports whether name has the form <group>-<booked>-<seq> and belongs to exactly this group. The ids of
// two groups may have a common prefix.
func isInstanceOf(name, group string) bool {
	rest, ok := strings.CutPrefix(name, group+"-")
	booked, seq, _ := strings.Cut(rest, "-")
	return ok && booked != "" && seq != "" && !strings.Contains(seq, "-")
}

// ParseInstanceName splits an InstanceName of the group. ok is false for any other text.
func ParseInstanceName(group, name string) (booked string, seq int, ok bool) {
	booked, number, _ := strings.Cut(strings.TrimPrefix(name, group+"-"), "-")
	seq, err := strconv.Atoi(number)
	return booked, seq, err == nil && isInstanceOf(name, group)
}

// InstanceOfKey returns the name of the instance that a hold's key contains, if the key is an ObjectName. It returns a
// key of another form unchanged.
func InstanceOfKey(key string) string {
	name, ours := strings.CutPrefix(key, ObjectPrefix)
	if cut := strings.LastIndexByte(name, '-'); ours && cut > 0 {
		return name[:cut]
	}
	return key
}

// GroupOfKey returns the node group that an ObjectName, a StandbyKey or an InstanceName contains. It returns "" for any
// other text.
func GroupOfKey(key string) string {
	if name, standby := strings.CutPrefix(key, standbyPrefix); standby {
		group, _, _ := strings.Cut(name, "/")
		return group
	}
	name := InstanceOfKey(key)
	for range 2 { // removes the sequence number, and then the time of the booking
		cut := strings.LastIndexByte(name, '-')
		if name = name[:max(cut, 0)]; name == "" {
			return ""
		}
	}
	return name
}

// AttemptOfKey returns the number of the attempt that a hold's key contains. It returns 0 if the key contains none.
func AttemptOfKey(key string) int {
	n, err := strconv.Atoi(key[strings.LastIndexByte(key, '-')+1:])
	if err != nil {
		return 0
	}
	return n
}

// InstanceID returns the id of an instance in CA, which is also its Node's spec.providerID: liqo://<group>/<name>.
func InstanceID(group, name string) string { return ProviderIDScheme + group + "/" + name }

// ParseInstanceID splits an instance id into its group and name. ok is false when id is not an instance id of this
// product.
func ParseInstanceID(id string) (group, name string, ok bool) {
	rest, ours := strings.CutPrefix(id, ProviderIDScheme)
	group, name, two := strings.Cut(rest, "/")
	if !ours || !two || !ValidGroupID(group) || !isInstanceOf(name, group) || strings.Contains(name, "/") {
		return "", "", false
	}
	return group, name, true
}

// ObjectName returns the name of an attempt's ResourceSlice, VirtualNode and Node: lca-<name>-<attempt>.
func ObjectName(instance string, attempt int) string {
	return ObjectPrefix + instance + "-" + strconv.Itoa(attempt)
}

// ParseObjectName splits an ObjectName of the group into its instance and attempt. ok is false for any other text.
func ParseObjectName(group, object string) (instance string, attempt int, ok bool) {
	instance, attempt = InstanceOfKey(object), AttemptOfKey(object)
	return instance, attempt, strings.HasPrefix(object, ObjectPrefix) && isInstanceOf(instance, group) && attempt > 0
}
