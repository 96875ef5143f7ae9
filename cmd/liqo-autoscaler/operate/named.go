package operate

import (
	"errors"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// errPodName is the error about a name that is not a pod's.
var errPodName = errors.New("want the pod as NAMESPACE/NAME, as in \"liqo-autoscaler explain pod default/web-0\"")

// isPod reports whether a name without its kind is a pod's: NAMESPACE/NAME. The instance ids of Cluster Autoscaler have
// slashes, too.
func isPod(name string) bool {
	return strings.Contains(name, "/") && !strings.HasPrefix(name, fleet.ProviderIDScheme)
}

// instanceNamed returns the name of the instance that an instance id, a Node's name or an instance's name means.
func instanceNamed(name string) string {
	if _, instance, ok := fleet.ParseInstanceID(name); ok {
		return instance
	}
	return fleet.InstanceOfKey(name)
}

// podNamed splits NAMESPACE/NAME, or NAME in the namespace of the kubeconfig's context.
func podNamed(name, kubeconfig string) (namespace, pod string, err error) {
	if isPod(name) {
		namespace, pod, _ = strings.Cut(name, "/")
	} else {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = kubeconfig
		pod = name
		if namespace, _, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).Namespace(); err != nil {
			return "", "", err
		}
	}
	if namespace == "" || pod == "" || strings.Contains(pod, "/") {
		return "", "", errPodName
	}
	return namespace, pod, nil
}
