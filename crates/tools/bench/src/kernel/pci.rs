//! A PCI device over virtio is of use for NICs: its registers are read right, and its pin works.
//!
//! A read shares a buffer with the reads of interrupt handlers, so no interrupt may come before it
//! has its answer. It finds the completions of the writes before it first, and without an edit lets
//! a microsecond pass for each, in which an interrupt comes in virtual time all the same. The
//! legacy interrupt of a device has no chip, so no driver gets it.

use super::edit::Edit;

/// Edits of which those of one series must have their texts.
pub(super) const PCI_OVER_VIRTIO: [&[Edit]; 2] = [&ONE_FILE, &TWO_FILES];

/// For 6.12, where virtio is in the same file as PCI.
const ONE_FILE: [Edit; 7] = [
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "	size_t bytes = sizeof(buf->data);

	if (!dev)
		return ULONG_MAX;

",
        to: "	size_t bytes = sizeof(buf->data);
	unsigned long flags;

	if (!dev)
		return ULONG_MAX;

	local_irq_save(flags);
",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "	put_cpu_var(um_pci_msg_bufs);
	return ret;
}

static void um_pci_cfgspace_write(",
        to: "	put_cpu_var(um_pci_msg_bufs);
	local_irq_restore(flags);
	return ret;
}

static void um_pci_cfgspace_write(",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "		if (completed && !HANDLE_IS_NO_FREE(completed))
			kfree(completed);
",
        to: "		if (completed && !HANDLE_IS_NO_FREE(completed)) {
			kfree(completed);
			continue;
		}
",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "	unsigned long ret = ULONG_MAX;

	buf = get_cpu_var(um_pci_msg_bufs);
	data = buf->data;

	switch (size) {",
        to: "	unsigned long ret = ULONG_MAX;
	unsigned long flags;

	local_irq_save(flags);
	buf = get_cpu_var(um_pci_msg_bufs);
	data = buf->data;

	switch (size) {",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "	put_cpu_var(um_pci_msg_bufs);
	return ret;
}

static void um_pci_bar_copy_to(",
        to: "	put_cpu_var(um_pci_msg_bufs);
	local_irq_restore(flags);
	return ret;
}

static void um_pci_bar_copy_to(",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "	um_pci_devices[free].dev = dev;
	vdev->priv = dev;
",
        to: "	irq_set_chip_and_handler(dev->irq, &dummy_irq_chip, handle_simple_irq);
	um_pci_devices[free].dev = dev;
	vdev->priv = dev;
",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "#include <linux/msi.h>\n",
        to: "#include <linux/msi.h>\n#include <linux/irq.h>\n",
    },
];

/// For later series (7.3), where each device has buffers of its own. A command of an interrupt
/// handler would still take the completions that the interrupted one waits for.
const TWO_FILES: [Edit; 5] = [
    Edit {
        file: "arch/um/drivers/virtio_pcidev.c",
        from: "static int virtio_pcidev_send_cmd(struct virtio_pcidev_device *dev,
				  struct virtio_pcidev_msg *cmd,",
        to: "static int send_cmd_without_interrupts(struct virtio_pcidev_device *dev,
				  struct virtio_pcidev_msg *cmd,",
    },
    Edit {
        file: "arch/um/drivers/virtio_pcidev.c",
        from: "static unsigned long virtio_pcidev_cfgspace_read(",
        to: "static int virtio_pcidev_send_cmd(struct virtio_pcidev_device *dev,
				  struct virtio_pcidev_msg *cmd,
				  unsigned int cmd_size,
				  const void *extra, unsigned int extra_size,
				  void *out, unsigned int out_size)
{
	unsigned long flags;
	int ret;

	local_irq_save(flags);
	ret = send_cmd_without_interrupts(dev, cmd, cmd_size, extra, extra_size,
					  out, out_size);
	local_irq_restore(flags);
	return ret;
}

static unsigned long virtio_pcidev_cfgspace_read(",
    },
    Edit {
        file: "arch/um/drivers/virtio_pcidev.c",
        from: "		if (completed)
			virtio_pcidev_free_buf(dev, completed);
",
        to: "		if (completed) {
			virtio_pcidev_free_buf(dev, completed);
			continue;
		}
",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "	um_pci_devices[free].dev = dev;

out:",
        to: "	irq_set_chip_and_handler(dev->irq, &dummy_irq_chip, handle_simple_irq);
	um_pci_devices[free].dev = dev;

out:",
    },
    Edit {
        file: "arch/um/drivers/virt-pci.c",
        from: "#include <linux/msi.h>\n",
        to: "#include <linux/msi.h>\n#include <linux/irq.h>\n",
    },
];
