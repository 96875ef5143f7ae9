package backend

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Ours returns the labels of all objects of a hub.
func Ours(hub string) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelHub: hub}
}

// TagsOf returns the tags of an attempt's objects: the labels in the parameter ours, and the keys that identify the
// attempt. They are labels on most objects, and annotations on the Node.
func TagsOf(a fleet.Attempt, ours map[string]string) map[string]string {
	tags := maps.Clone(ours)
	tags[LabelGroup] = a.Group
	tags[LabelInstance] = a.Instance
	tags[LabelAttempt] = strconv.Itoa(a.Number)
	return tags
}

// AttemptOf reads an attempt, without its provider, from the tags of one of its objects.
func AttemptOf(tags map[string]string) (a fleet.Attempt, ok bool) {
	number, err := strconv.Atoi(tags[LabelAttempt])
	return fleet.Attempt{Group: tags[LabelGroup], Instance: tags[LabelInstance], Number: number}, err == nil
}

// Carries reports whether the map have contains every key of the map want with the same value.
func Carries(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// CredentialsText returns the value of AnnotationCredentials.
func CredentialsText(credentials fleet.Credentials) string {
	text, _ := json.Marshal(credentials) // the struct contains only strings, so this cannot fail
	return string(text)
}

// CredentialsOf reads AnnotationCredentials. It returns zero when the annotation is missing or unreadable.
func CredentialsOf(annotations map[string]string) (credentials fleet.Credentials) {
	if json.Unmarshal([]byte(annotations[AnnotationCredentials]), &credentials) != nil {
		return fleet.Credentials{}
	}
	return credentials
}

// BookingOf reads AnnotationBooking. It returns nil when the annotation is missing or unreadable.
func BookingOf(annotations map[string]string) *fleet.Booking {
	var booking fleet.Booking
	if json.Unmarshal([]byte(annotations[AnnotationBooking]), &booking) != nil {
		return nil
	}
	return &booking
}
