// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"reflect"
	"sort"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

func internalIP(addresses ...string) func(*v1.Node) {
	return func(node *v1.Node) {
		for _, address := range addresses {
			node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: address})
		}
	}
}

func address(kind v1.NodeAddressType, address string) func(*v1.Node) {
	return func(node *v1.Node) {
		node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: kind, Address: address})
	}
}

func provider(id string) func(*v1.Node) {
	return func(node *v1.Node) { node.Spec.ProviderID = id }
}

func hostnameLabel(name string) func(*v1.Node) {
	return func(node *v1.Node) { node.Labels = map[string]string{v1.LabelHostname: name} }
}

// TestMatching checks which nodes a label's value identifies.
func TestMatching(t *testing.T) {
	byName := []*v1.Node{makeNode("a"), makeNode("b.example.com", internalIP("10.0.0.2")), makeNode("fd00--1")}
	byIP := []*v1.Node{
		makeNode("v4", internalIP("10.0.0.1"), address(v1.NodeExternalIP, "192.0.2.1"), address(v1.NodeHostName, "10.0.0.99")),
		makeNode("v6", internalIP("fd00::1")),
		makeNode("long-v6", internalIP("FD00:0:0:0:0:0:0:2")),
		makeNode("both", internalIP("10.0.0.3", "fd00::3")),
		makeNode("odd", internalIP("not an address")),
		makeNode("none"),
	}
	byHostname := []*v1.Node{
		makeNode("a", address(v1.NodeHostName, "host-a")),
		makeNode("b", hostnameLabel("host-b")),
		makeNode("c", address(v1.NodeHostName, "host-c.example.com"), hostnameLabel("host-c")),
		makeNode("d"),
	}
	byProvider := []*v1.Node{
		makeNode("aws", provider("aws:///eu-west-1a/i-0abc")),
		makeNode("gce-1", provider("gce://one/zone/worker")),
		makeNode("gce-2", provider("gce://two/zone/worker")),
		makeNode("plain", provider("plain-id")),
		makeNode("slash", provider("odd://ends/")),
		makeNode("none"),
	}
	twins := []*v1.Node{
		makeNode("old", internalIP("10.0.0.1", "10.0.0.8")), makeNode("new", internalIP("10.0.0.1", "10.0.0.9")),
		makeNode("newest", internalIP("10.0.0.1", "10.0.0.1")), makeNode("twice", internalIP("10.0.0.5", "10.0.0.5")),
	}

	// The first two are as on clouds. For the last two, the name of one is the address of the other.
	automatic := []*v1.Node{
		makeNode("ip-10-0-0-7.ec2.internal", internalIP("10.0.0.7", "FD00:0:0:0:0:0:0:7"), address(v1.NodeExternalIP, "192.0.2.7"),
			address(v1.NodeHostName, "ip-10-0-0-7"), hostnameLabel("host-7"), provider("aws:///eu-west-1a/i-0abc")),
		makeNode("kind-worker", internalIP("172.18.0.3"), address(v1.NodeHostName, "kind-worker"), hostnameLabel("kind-worker"),
			provider("kind://docker/kind/kind-worker")),
		makeNode("10.0.0.9", internalIP("10.0.0.9")),
		makeNode("edge-1", internalIP("192.168.1.10")), makeNode("edge-2", internalIP("192.168.1.10")),
		makeNode("twin"), makeNode("other", hostnameLabel("twin"), internalIP("10.0.0.10")),
	}
	seventh := []string{"ip-10-0-0-7.ec2.internal"}

	tests := []struct {
		name  string
		by    config.NodeLoadMatchBy
		nodes []*v1.Node
		label string
		want  []string
	}{
		{"a name", config.NodeLoadMatchName, byName, "a", []string{"a"}},
		{"a name with a port", config.NodeLoadMatchName, byName, "b.example.com:9100", []string{"b.example.com"}},
		{"a short name is another one", config.NodeLoadMatchName, byName, "b", nil},
		{"an address is no name", config.NodeLoadMatchName, byName, "10.0.0.2:9100", nil},
		{"a port alone", config.NodeLoadMatchName, byName, ":9100", nil},
		{"a colon without a port", config.NodeLoadMatchName, byName, "a:", nil},
		{"a port of six digits", config.NodeLoadMatchName, byName, "a:123456", nil},
		{"two ports", config.NodeLoadMatchName, byName, "a:1:2", nil},
		{"broken UTF-8", config.NodeLoadMatchName, byName, "\xff\xfea:80", nil},
		{"an open bracket", config.NodeLoadMatchName, byName, "[", nil},
		{"empty brackets", config.NodeLoadMatchName, byName, "[]:80", nil},
		{"brackets around a name", config.NodeLoadMatchName, byName, "[a]", []string{"a"}},

		{"an IPv4 address", config.NodeLoadMatchInternalIP, byIP, "10.0.0.1", []string{"v4"}},
		{"an IPv4 address with a port", config.NodeLoadMatchInternalIP, byIP, "10.0.0.1:9100", []string{"v4"}},
		{"an external address", config.NodeLoadMatchInternalIP, byIP, "192.0.2.1:9100", nil},
		{"an address of the type Hostname", config.NodeLoadMatchInternalIP, byIP, "10.0.0.99", nil},
		{"a name", config.NodeLoadMatchInternalIP, byIP, "v4", nil},
		{"an IPv6 address", config.NodeLoadMatchInternalIP, byIP, "fd00::1", []string{"v6"}},
		{"an IPv6 address in brackets", config.NodeLoadMatchInternalIP, byIP, "[fd00::1]", []string{"v6"}},
		{"an IPv6 address with a port", config.NodeLoadMatchInternalIP, byIP, "[fd00::1]:9100", []string{"v6"}},
		{"an IPv6 address that ends like a port", config.NodeLoadMatchInternalIP, byIP, "fd00::1:9100", nil},
		{"an IPv6 address in capitals and in full", config.NodeLoadMatchInternalIP, byIP, "[FD00:0:0:0:0:0:0:1]:9100", []string{"v6"}},
		{"the second of two addresses", config.NodeLoadMatchInternalIP, byIP, "[fd00::3]:1", []string{"both"}},
		{"an address that is none", config.NodeLoadMatchInternalIP, byIP, "not an address:1", []string{"odd"}},
		{"brackets with something behind", config.NodeLoadMatchInternalIP, byIP, "[fd00::1]9100", nil},

		{"a hostname", config.NodeLoadMatchHostname, byHostname, "host-a:9100", []string{"a"}},
		{"the hostname's label", config.NodeLoadMatchHostname, byHostname, "host-b", []string{"b"}},
		{"both differ: the label", config.NodeLoadMatchHostname, byHostname, "host-c:9100", []string{"c"}},
		{"a node's name is not its hostname", config.NodeLoadMatchHostname, byHostname, "d", nil},

		{"a provider's id", config.NodeLoadMatchProviderID, byProvider, "aws:///eu-west-1a/i-0abc", []string{"aws"}},
		{"its last part", config.NodeLoadMatchProviderID, byProvider, "i-0abc", []string{"aws"}},
		{"an id with a port", config.NodeLoadMatchProviderID, byProvider, "aws:///eu-west-1a/i-0abc:9100", []string{"aws"}},
		{"half of an id", config.NodeLoadMatchProviderID, byProvider, "eu-west-1a/i-0abc", nil},
		{"an id without slashes", config.NodeLoadMatchProviderID, byProvider, "plain-id", []string{"plain"}},
		{"an id whose last part two nodes have", config.NodeLoadMatchProviderID, byProvider, "gce://one/zone/worker", []string{"gce-1"}},
		{"the last part that two nodes have", config.NodeLoadMatchProviderID, byProvider, "worker", []string{"gce-1", "gce-2"}},

		{"a name", config.NodeLoadMatchAuto, automatic, "ip-10-0-0-7.ec2.internal", seventh},
		{"plain node_exporter", config.NodeLoadMatchAuto, automatic, "10.0.0.7:9100", seventh},
		{"plain node_exporter by IPv6", config.NodeLoadMatchAuto, automatic, "[fd00::7]:9100", seventh},
		{"a hostname", config.NodeLoadMatchAuto, automatic, "ip-10-0-0-7", seventh},
		{"a hostname's label", config.NodeLoadMatchAuto, automatic, "host-7:9400", seventh},
		{"its last part", config.NodeLoadMatchAuto, automatic, "i-0abc", seventh},
		{"an address of no node", config.NodeLoadMatchAuto, automatic, "10.0.0.8:9100", nil},
		{"all of a node's names are the same", config.NodeLoadMatchAuto, automatic, "kind-worker", []string{"kind-worker"}},
		{"a node that is called by its address", config.NodeLoadMatchAuto, automatic, "10.0.0.9:9100", []string{"10.0.0.9"}},
		{"an address that two nodes have", config.NodeLoadMatchAuto, automatic, "192.168.1.10:9100", []string{"edge-1", "edge-2"}},
		{"a name that is another node's hostname", config.NodeLoadMatchAuto, automatic, "twin:9100", []string{"other", "twin"}},

		{"an address of three nodes", config.NodeLoadMatchInternalIP, twins, "10.0.0.1:9100", []string{"new", "newest", "old"}},
		{"an address that a node has twice", config.NodeLoadMatchInternalIP, twins, "10.0.0.5:9100", []string{"twice"}},
	}
	for _, tt := range tests {
		t.Run(string(tt.by)+"/"+tt.name, func(t *testing.T) {
			var got []string
			for _, node := range newDirectory(tt.by, tt.nodes).find(tt.label) {
				got = append(got, tt.nodes[node].Name)
			}
			sort.Strings(got)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%q means the nodes %q, want %q", tt.label, got, tt.want)
			}
		})
	}
}

// TestMatchingPrefersTheWholeValue uses an id that looks like a value with a port.
func TestMatchingPrefersTheWholeValue(t *testing.T) {
	nodes := []*v1.Node{makeNode("one", provider("id")), makeNode("two", provider("id:80"))}
	d := newDirectory(config.NodeLoadMatchProviderID, nodes)
	if found := d.find("id:80"); len(found) != 1 || nodes[found[0]].Name != "two" {
		t.Errorf("found %v, want the node two", found)
	}
}

// TestMatchingOddValues tries all short values of the significant bytes: none may panic or become longer.
func TestMatchingOddValues(t *testing.T) {
	const bytes = "[]:a1/\xff"
	var try func(prefix string, left int)
	try = func(prefix string, left int) {
		if got := withoutPort(prefix); len(got) > len(prefix) {
			t.Fatalf("withoutPort(%q) is %q", prefix, got)
		}
		if left == 0 {
			return
		}
		for i := range []byte(bytes) {
			try(prefix+bytes[i:i+1], left-1)
		}
	}
	try("", 6)
}
