package liqo

import (
	"testing"

	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func items(t *testing.T, list client.ObjectList) (found []client.Object) {
	t.Helper()
	require.NoError(t, meta.EachListItem(list, func(object runtime.Object) error {
		found = append(found, object.(client.Object))
		return nil
	}))
	return found
}

func signWith(h handshake, nonce string) ([]byte, error) {
	return authentication.SignNonce(h.key, []byte(nonce))
}

// copies returns copies of objects, so that a fake cluster may change them.
func copies(objects []any) (copied []client.Object) {
	for _, object := range objects {
		copied = append(copied, object.(client.Object).DeepCopyObject().(client.Object))
	}
	return copied
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }
