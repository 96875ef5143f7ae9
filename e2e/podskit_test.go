package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const podsWeb = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {motd: from the consumer's ConfigMap}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {pass: s3cret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 5
      initContainers:
      - name: init
        image: localhost/box:1
        args: [write, /scratch/index.html, made by the init container]
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      - name: side
        image: localhost/box:1
        restartPolicy: Always
        args: [show, /conf/motd, /secret/pass]
        resources: {requests: {cpu: 20m, memory: 16Mi}}
        volumeMounts: [{name: conf, mountPath: /conf}, {name: secret, mountPath: /secret}]
      containers:
      - name: web
        image: localhost/box:1
        args: [serve, ":8080", /scratch]
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}
        resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {memory: 64Mi}}
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      volumes:
      - {name: scratch, emptyDir: {}}
      - {name: conf, configMap: {name: conf}}
      - {name: secret, secret: {secretName: secret}}
`

// manifest parses an object.
func manifest[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), object))
	return object
}

// apply applies manifests to the offloaded namespace.
func (s *stack) apply(ctx context.Context, manifests string) {
	s.t.Helper()
	s.tool(ctx, s.admin("consumer"), []byte(manifests), "kubectl", "apply", "-n", namespace, "-f", "-")
}

// readyPod returns the only pod with the label app, once it is Ready.
func (s *stack) readyPod(ctx context.Context, app string) (*corev1.Pod, error) {
	pods, err := s.consumer.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 {
		return nil, fmt.Errorf("%d pods of %s", len(pods.Items), app)
	}
	pod := &pods.Items[0]
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("pod %s is %s, not Ready: %+v %+v", pod.Name, pod.Status.Phase,
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// forwarded gets a file from the pod's port 8080 through kubectl port-forward on the consumer.
func (s *stack) forwarded(ctx context.Context, t *testing.T, pod, path string) (text string) {
	t.Helper()
	ports, err := proc.FreePorts(1)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(ports[0])
	require.NoError(t, err)
	p, err := proc.Start(proc.Spec{Name: "port-forward", Path: filepath.Join(s.lab.Bin, "kubectl"), LogDir: s.dir,
		Args: []string{"port-forward", "-n", namespace, "pod/" + pod, port + ":8080"}, Env: s.admin("consumer")})
	require.NoError(t, err)
	defer p.Kill()
	err = testkit.Poll(ctx, 30*time.Second, pollEvery, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ports[0]+path, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return errors.Join(err, errors.New(proc.Tail(p.Log, 5)))
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		text = string(body)
		return err
	})
	require.NoError(t, err)
	return text
}
