// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/localcluster"
)

const (
	// readyDeadline limits the start of a node's control plane: several times the usual duration.
	readyDeadline = 4 * time.Minute
	// pollInterval is the time between two requests to the API server.
	pollInterval = 100 * time.Millisecond
	// configFile is the path of kubeadm's configuration on the node.
	configFile = "/root/kubeadm.yaml"
)

// staticPods are kubeadm's static pods on every control-plane node; their names end in the node's name.
var staticPods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// InitOptions are changes to a minimal cluster.
type InitOptions struct {
	// ClusterConfiguration has lines for kubeadm's ClusterConfiguration, for
	// example "apiServer:" or "scheduler:" with extraArgs and extraVolumes.
	ClusterConfiguration string
	// Patches is a directory on the node with patches for kubeadm.
	Patches string
}

// JoinOptions are options for a node that joins.
type JoinOptions struct {
	// Patches is a directory on the node with patches for kubeadm.
	Patches string
}

// invitation is the data that a node needs to join.
type invitation struct {
	endpoint string
	// token is the bootstrap token, certificateKey decrypts the control
	// plane's certificates, authorityHash is the hash of the cluster's CA.
	token, certificateKey, authorityHash string
}

// document is one document of kubeadm's configuration.
type document map[string]any

// Init creates a cluster with the node by kubeadm init. It returns when the node and its static pods are ready, and
// pods can be created.
func (n *Node) Init(ctx context.Context, options InitOptions) error {
	// "abcdef.0123456789abcdef", and 32 bytes in hex.
	token := randomHex(11)
	c := &invitation{endpoint: n.address + ":6443", token: token[:6] + "." + token[6:], certificateKey: randomHex(32)}
	own := document{}
	if err := yaml.Unmarshal([]byte(options.ClusterConfiguration), &own); err != nil {
		return fmt.Errorf("the lines for ClusterConfiguration: %w; next: correct them", err)
	}
	configuration := document{
		"apiVersion":           "kubeadm.k8s.io/v1beta3",
		"kind":                 "ClusterConfiguration",
		"kubernetesVersion":    n.hub.version,
		"controlPlaneEndpoint": c.endpoint,
		"networking":           document{"serviceSubnet": serviceSubnet},
	}
	maps.Copy(configuration, own)
	initialization := document{
		"apiVersion":       "kubeadm.k8s.io/v1beta3",
		"kind":             "InitConfiguration",
		"bootstrapTokens":  []any{document{"token": c.token}},
		"certificateKey":   c.certificateKey,
		"localAPIEndpoint": document{"advertiseAddress": n.address},
		"nodeRegistration": n.registration(),
	}
	setPatches(initialization, options.Patches)
	kubelet := document{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		// There is no systemd to manage the cgroups.
		"cgroupDriver": "cgroupfs",
		// The machine may have swap.
		"failSwapOn": false,
	}
	if err := n.kubeadm(ctx, "init --upload-certs --skip-phases=addon", initialization, configuration, kubelet); err != nil {
		return err
	}
	var err error
	if c.authorityHash, err = n.authorityHash(); err != nil {
		return err
	}
	if err := n.Ready(ctx); err != nil {
		return err
	}
	n.cluster = c
	return nil
}

// Join adds the node to a cluster's control plane with kubeadm join.
// It returns when the node and its static pods are ready.
func (n *Node) Join(ctx context.Context, member *Node, options JoinOptions) error {
	c := member.cluster
	if c == nil {
		return fmt.Errorf("%s has no cluster that %s can join; next: call Init or Join on it", member.name, n.name)
	}
	join := document{
		"apiVersion":       "kubeadm.k8s.io/v1beta3",
		"kind":             "JoinConfiguration",
		"nodeRegistration": n.registration(),
		"discovery": document{"bootstrapToken": document{
			"apiServerEndpoint": c.endpoint,
			"token":             c.token,
			"caCertHashes":      []any{c.authorityHash},
		}},
		"controlPlane": document{
			"certificateKey":   c.certificateKey,
			"localAPIEndpoint": document{"advertiseAddress": n.address},
		},
	}
	setPatches(join, options.Patches)
	if err := n.kubeadm(ctx, "join", join); err != nil {
		return err
	}
	n.cluster = c
	if err := n.Ready(ctx); err != nil {
		return err
	}
	// etcd stops for some seconds until its second member runs, so that lease holders on the other node exit.
	return member.Ready(ctx)
}

// registration returns the node registration options of kubeadm.
func (n *Node) registration() document {
	socket, arguments := "unix:///run/containerd/containerd.sock", document{"node-ip": n.address}
	if n.docker {
		socket, arguments["cni-bin-dir"] = "/var/run/dockershim.sock", n.hub.plugins
	}
	return document{
		"name":             n.name,
		"criSocket":        socket,
		"kubeletExtraArgs": arguments,
		// Pods must be able to run on the node, because there may be no other nodes.
		"taints": []any{},
	}
}

func setPatches(configuration document, folder string) {
	if folder != "" {
		configuration["patches"] = document{"directory": folder}
	}
}

// kubeadm runs a command of kubeadm with a configuration.
func (n *Node) kubeadm(ctx context.Context, command string, configuration ...document) error {
	var text strings.Builder
	for _, part := range configuration {
		content, err := yaml.Marshal(part)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "---\n%s", content)
	}
	if err := n.WriteFile(configFile, []byte(text.String())); err != nil {
		return err
	}
	// The images of kube-proxy and CoreDNS are missing. Swap belongs to the machine. There is no systemd with a service of
	// Docker. The check HTTPProxyCIDR writes IPv4 addresses in brackets, which Go 1.26 and later does not parse as a URL.
	script := fmt.Sprintf("kubeadm %s --config %s --ignore-preflight-errors=ImagePull,Swap,Service-Docker,HTTPProxyCIDR",
		command, configFile)
	if _, err := n.Run(ctx, script); err != nil {
		return fmt.Errorf("%w\n%s", err, n.LogTail("kubelet"))
	}
	verb, _, _ := strings.Cut(command, " ")
	n.hub.report("%s: kubeadm %s is done", n.name, verb)
	return nil
}

// Ready waits until the node and its static pods are ready and the
// service account of pods exists, according to the node's own API server.
func (n *Node) Ready(ctx context.Context) error {
	client, err := n.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyDeadline, fmt.Errorf("not ready after %s", readyDeadline))
	defer cancel()
	var missing error
	err = wait.PollImmediateUntilWithContext(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		missing = n.missing(ctx, client)
		return missing == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %w\n%snext: see %s", n.name, context.Cause(ctx), missing, n.LogTail(), n.logs)
	}
	n.hub.report("%s: ready", n.name)
	return nil
}

// missing returns an error for the first missing part of a working control-plane node.
func (n *Node) missing(ctx context.Context, client kubernetes.Interface) error {
	for _, component := range staticPods {
		pod, err := client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, component+"-"+n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !podReady(pod) {
			return fmt.Errorf("the pod %s is not ready", pod.Name)
		}
	}
	node, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !localcluster.NodeReady(node) {
		return fmt.Errorf("the node %s is not ready", n.name)
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return errors.New("the service account default does not exist")
	}
	return err
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// authorityHash returns the hash of the CA's public key, by which a joining node verifies the cluster.
func (n *Node) authorityHash() (string, error) {
	file := n.Root() + "/etc/kubernetes/pki/ca.crt"
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return "", fmt.Errorf("%s contains no certificate; next: check the file", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w; next: check the file", file, err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(certificate.RawSubjectPublicKeyInfo)), nil
}

// randomHex returns random bytes in hex.
func randomHex(count int) string {
	content := make([]byte, count)
	// It never fails.
	_, _ = rand.Read(content)
	return hex.EncodeToString(content)
}
