package grpcserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// CA maps each of these codes to its error class OutOfResources, because another group may have the missing capacity.
func TestErrorClassOfEveryCode(t *testing.T) {
	for _, code := range append(fleet.Codes, "Newer") {
		want := int32(classOther)
		switch code {
		case fleet.CodeNoOffer, fleet.CodeNoCapacity, fleet.CodeRefused, fleet.CodeSpending:
			want = classOutOfResources
		}
		info := toErrorInfo(fleet.NewFailure(code, "", "", "no"))
		require.Equal(t, want, info.GetInstanceErrorClass(), code)
		require.Equal(t, string(code), info.GetErrorCode())
	}
}
