package wire

import (
	"errors"
	"fmt"
	"regexp"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// These constants bound the contents of a pod that PodResources reads. A container may have only two bytes in a
// message, but needs more than a kilobyte as a Go value. So a limit on the size of messages does not limit the memory
// for a pod.
const (
	maxContainers = 500
	maxResources  = 50
	maxQuantity   = 64 // characters
)

// These constants are field numbers of k8s.io/api/core/v1/generated.proto and
// k8s.io/apimachinery/pkg/api/resource/generated.proto.
const (
	podSpec                protowire.Number = 2
	specContainers         protowire.Number = 2
	specInitContainers     protowire.Number = 20
	specOverhead           protowire.Number = 32
	specResources          protowire.Number = 40
	containerResources     protowire.Number = 8
	containerRestartPolicy protowire.Number = 24
	resourcesLimits        protowire.Number = 1
	resourcesRequests      protowire.Number = 2
	mapKey, mapValue       protowire.Number = 1, 2
	quantityString         protowire.Number = 1
)

// errMalformed means that the bytes are not a protobuf message.
var errMalformed = errors.New("malformed protobuf")

// Each calls the function do with each field of a message whose value is bytes, a string or a message, in the order of
// the fields. It skips other fields. If do returns an error, Each stops and returns this error. It returns an error if
// the message is malformed.
func Each(raw []byte, do func(number protowire.Number, value []byte) error) error {
	for len(raw) > 0 {
		number, kind, tag := protowire.ConsumeTag(raw)
		if tag < 0 {
			return errMalformed
		}
		n := protowire.ConsumeFieldValue(number, kind, raw[tag:])
		if n < 0 {
			return errMalformed
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(raw[tag:])
			if err := do(number, value); err != nil {
				return err
			}
		}
		raw = raw[tag+n:]
	}
	return nil
}

// PodResources decodes only the fields of a pod that resource.PodRequests of k8s.io/component-helpers reads. It needs
// a bounded amount of memory for any input. It returns an error if the pod has too many containers or resources, or
// is malformed. It overwrites pod and reuses the slices in it, so a caller can read many pods into the same Pod.
func PodResources(raw []byte, pod *corev1.Pod) error {
	spec := &pod.Spec
	clear(spec.Containers)
	clear(spec.InitContainers)
	*spec = corev1.PodSpec{Containers: spec.Containers[:0], InitContainers: spec.InitContainers[:0]}
	err := Each(raw, func(number protowire.Number, value []byte) error {
		if number != podSpec {
			return nil
		}
		return readSpec(value, spec)
	})
	if err != nil {
		return fmt.Errorf("read pod: %w", err)
	}
	return nil
}

func readSpec(raw []byte, spec *corev1.PodSpec) error {
	return Each(raw, func(number protowire.Number, value []byte) (err error) {
		switch number { //nolint:exhaustive // the other fields are not read
		case specContainers:
			spec.Containers, err = appendContainer(spec.Containers, value)
		case specInitContainers:
			spec.InitContainers, err = appendContainer(spec.InitContainers, value)
		case specOverhead:
			spec.Overhead, err = addQuantity(spec.Overhead, value)
		case specResources:
			if spec.Resources == nil {
				spec.Resources = &corev1.ResourceRequirements{}
			}
			err = readResources(value, spec.Resources)
		}
		return err
	})
}

func appendContainer(all []corev1.Container, raw []byte) ([]corev1.Container, error) {
	if len(all) == maxContainers {
		return nil, fmt.Errorf("it has more than %d containers", maxContainers)
	}
	var c corev1.Container
	err := Each(raw, func(number protowire.Number, value []byte) error {
		switch number { //nolint:exhaustive // the other fields are not read
		case containerResources:
			return readResources(value, &c.Resources)
		case containerRestartPolicy:
			policy := corev1.ContainerRestartPolicy(value)
			c.RestartPolicy = &policy
		}
		return nil
	})
	return append(all, c), err
}

func readResources(raw []byte, r *corev1.ResourceRequirements) error {
	return Each(raw, func(number protowire.Number, value []byte) (err error) {
		switch number { //nolint:exhaustive // the other fields are not read
		case resourcesLimits:
			r.Limits, err = addQuantity(r.Limits, value)
		case resourcesRequests:
			r.Requests, err = addQuantity(r.Requests, value)
		}
		return err
	})
}

// farExponent matches a quantity whose exponent has three or more digits. No real amount is as large as 1e100.
var farExponent = regexp.MustCompile(`^([+-]?)([0-9.]+)[eE]([+-]?)[0-9]{3,}$`)

// parse parses a quantity from an untrusted text. resource.ParseQuantity computes with as many digits as the exponent
// specifies, and takes minutes for 1e2147483647. So parse replaces an amount with a very large exponent by 1e18, and
// an amount with a very small (negative) exponent by zero.
func parse(text string) (resource.Quantity, error) {
	far := farExponent.FindStringSubmatch(text)
	if far == nil {
		return resource.ParseQuantity(text)
	}
	quantity, err := resource.ParseQuantity(far[1] + far[2])
	if err != nil || quantity.IsZero() || far[3] == "-" {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(far[1] + "1e18")
}

// addQuantity decodes an entry of a map of quantities, and adds the entry to the list.
func addQuantity(list corev1.ResourceList, entry []byte) (corev1.ResourceList, error) {
	var name, text string
	err := Each(entry, func(number protowire.Number, value []byte) error {
		switch number { //nolint:exhaustive // the other fields are not read
		case mapKey:
			name = string(value)
		case mapValue:
			text = ""
			return Each(value, func(number protowire.Number, value []byte) error {
				if number == quantityString {
					text = string(value)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return list, err
	}
	if len(text) > maxQuantity {
		return list, fmt.Errorf("the quantity of a resource has more than %d characters", maxQuantity)
	}
	if list == nil {
		list = corev1.ResourceList{}
	}
	if len(list) == maxResources {
		return list, fmt.Errorf("it has more than %d resources", maxResources)
	}
	quantity := resource.Quantity{}
	if text != "" {
		if quantity, err = parse(text); err != nil {
			return list, fmt.Errorf("quantity %q: %w", text, err)
		}
	}
	list[corev1.ResourceName(name)] = quantity
	return list, nil
}
