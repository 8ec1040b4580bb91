//! The layouts and numbers here, against those of the headers of libfabric.

use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;

use super::constants::*;
use super::fid::*;
use super::info::*;
use super::objects::*;
use super::transfers::*;

const INCLUDE: &str = "\
#include <stddef.h>
#include <stdio.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
";

type Question = (String, u64);

macro_rules! fields {
    ($ours:ty = $theirs:literal: $($field:ident $(as $name:ident)?),*) => {
        vec![$({
            let name = [$(stringify!($name),)? stringify!($field)][0];
            (format!("offsetof({}, {name})", $theirs), offset_of!($ours, $field) as u64)
        }),*]
    };
}

macro_rules! numbers {
    ($($name:ident)*) => {
        vec![$((stringify!($name).to_owned(), $name as u64)),*]
    };
}

fn info() -> Vec<Vec<Question>> {
    vec![
        fields!(TxAttr = "struct fi_tx_attr":
            caps, mode, op_flags, msg_order, comp_order, inject_size, size, iov_limit,
            rma_iov_limit, tclass),
        fields!(RxAttr = "struct fi_rx_attr":
            caps, op_flags, msg_order, comp_order, size, iov_limit),
        fields!(EpAttr = "struct fi_ep_attr":
            ep_type as type, protocol, protocol_version, max_msg_size, mem_tag_format, tx_ctx_cnt,
            rx_ctx_cnt, auth_key_size, auth_key),
        fields!(DomainAttr = "struct fi_domain_attr":
            domain, name, threading, control_progress, data_progress, resource_mgmt, av_type,
            mr_mode, mr_key_size, cq_data_size, cq_cnt, max_ep_srx_ctx, mr_iov_limit, caps, mode,
            max_err_data, tclass),
        fields!(FabricAttr = "struct fi_fabric_attr":
            fabric, name, prov_name, prov_version, api_version),
        fields!(Info = "struct fi_info":
            next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle,
            tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr, nic),
        fields!(Provider = "struct fi_provider":
            version, fi_version, context, name, getinfo, fabric, cleanup),
    ]
}

fn objects() -> Vec<Vec<Question>> {
    vec![
        fields!(Fid = "struct fid": class as fclass, context, ops),
        fields!(FidOps = "struct fi_ops": close, bind, control, ops_open),
        fields!(FidFabric = "struct fid_fabric": ops, api_version),
        fields!(FabricOps = "struct fi_ops_fabric":
            domain, passive_ep, eq_open, wait_open, trywait),
        fields!(FidDomain = "struct fid_domain": ops, mr),
        fields!(DomainOps = "struct fi_ops_domain":
            av_open, cq_open, endpoint, scalable_ep, cntr_open, poll_open, stx_ctx, srx_ctx,
            query_atomic, query_collective),
        fields!(MrOps = "struct fi_ops_mr": reg, regv, regattr),
        fields!(FidMr = "struct fid_mr": mem_desc, key),
        fields!(MrAttr = "struct fi_mr_attr":
            iov as mr_iov, iov_count, access, offset, requested_key, context),
        fields!(AvAttr = "struct fi_av_attr":
            av_type as type, rx_ctx_bits, count, ep_per_node, name, map_addr, flags),
        fields!(FidAv = "struct fid_av": ops),
        fields!(AvOps = "struct fi_ops_av": insert, insertsvc, insertsym, remove, lookup, straddr),
        fields!(EqAttr = "struct fi_eq_attr": size, flags, wait_obj, signaling_vector, wait_set),
        fields!(FidEq = "struct fid_eq": ops),
        fields!(EqOps = "struct fi_ops_eq": read, readerr, write, sread, strerror),
        fields!(CqAttr = "struct fi_cq_attr":
            size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set),
        fields!(CqErrEntry = "struct fi_cq_err_entry":
            op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data, err_data_size),
        fields!(FidCq = "struct fid_cq": ops),
        fields!(CqOps = "struct fi_ops_cq":
            read, readfrom, readerr, sread, sreadfrom, signal, strerror),
        fields!(CntrAttr = "struct fi_cntr_attr": events, wait_obj, wait_set, flags),
        fields!(FidCntr = "struct fid_cntr": ops),
        fields!(CntrOps = "struct fi_ops_cntr": read, readerr, add, set, wait, adderr, seterr),
    ]
}

fn transfers() -> Vec<Vec<Question>> {
    vec![
        fields!(FidEp = "struct fid_ep": ops, cm, msg, rma, tagged, atomic, collective),
        fields!(EpOps = "struct fi_ops_ep":
            cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left),
        fields!(CmOps = "struct fi_ops_cm":
            setname, getname, getpeer, connect, listen, accept, reject, shutdown),
        fields!(Msg = "struct fi_msg": iov as msg_iov, desc, iov_count, addr, context, data),
        fields!(TaggedMsg = "struct fi_msg_tagged":
            iov as msg_iov, desc, iov_count, addr, tag, ignore, context, data),
        fields!(MsgOps = "struct fi_ops_msg":
            recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata),
        fields!(TaggedOps = "struct fi_ops_tagged":
            recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata),
        fields!(RmaIov = "struct fi_rma_iov": addr, len, key),
        fields!(RmaMsg = "struct fi_msg_rma":
            iov as msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data),
        fields!(RmaOps = "struct fi_ops_rma":
            read, readv, readmsg, write, writev, writemsg, inject, writedata, injectdata),
    ]
}

fn constants() -> Vec<Question> {
    numbers!(
        FI_MSG FI_RMA FI_READ FI_WRITE FI_REMOTE_READ FI_REMOTE_WRITE FI_CLASS_MR FI_ENOKEY
        FI_MR_BASIC FI_TAGGED FI_RECV FI_SEND FI_MULTI_RECV FI_REMOTE_CQ_DATA FI_PEEK FI_FENCE
        FI_COMPLETION FI_INJECT FI_INJECT_COMPLETE FI_TRANSMIT_COMPLETE FI_DELIVERY_COMPLETE
        FI_LOCAL_COMM FI_REMOTE_COMM FI_SOURCE FI_DISCARD FI_DIRECTED_RECV FI_CLAIM
        FI_SELECTIVE_COMPLETION FI_EVENT FI_ORDER_SAS FI_ADDR_UNSPEC FI_PROV_SPECIFIC
        FI_EP_RDM FI_AV_TABLE FI_THREAD_SAFE FI_PROGRESS_AUTO FI_RM_ENABLED FI_WAIT_NONE
        FI_WAIT_UNSPEC FI_WAIT_FD FI_GETWAIT FI_WAIT_YIELD FI_CQ_FORMAT_CONTEXT
        FI_CQ_FORMAT_MSG FI_CQ_FORMAT_DATA
        FI_CQ_FORMAT_TAGGED FI_CLASS_FABRIC FI_CLASS_DOMAIN FI_CLASS_EP FI_CLASS_AV
        FI_CLASS_EQ FI_CLASS_CQ FI_CLASS_CNTR FI_GETOPSFLAG FI_SETOPSFLAG FI_ENABLE
        FI_OPT_ENDPOINT FI_OPT_MIN_MULTI_RECV FI_ETOOSMALL FI_EOPBADSTATE FI_EAVAIL
        FI_EBADFLAGS FI_ENOCQ FI_ETRUNC FI_ENOAV
    )
}

fn ask(questions: &[Question]) -> Vec<u64> {
    let directory: PathBuf =
        std::env::temp_dir().join(format!("earmark-abi-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (source, program) = (directory.join("abi.c"), directory.join("abi"));
    let print = |(question, _): &Question| {
        format!("    printf(\"%llu\\n\", (unsigned long long)({question}));\n")
    };
    let body: String = questions.iter().map(print).collect();
    let text = format!("{INCLUDE}int main(void)\n{{\n{body}    return 0;\n}}\n");
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc").arg(&source).arg("-o").arg(&program).status();
    assert!(
        compiled.is_ok_and(|status| status.success()),
        "the headers of libfabric, or a C compiler, are missing; on Debian: \
         sudo apt-get install libfabric-dev gcc"
    );
    let output = Command::new(&program).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn layouts_and_numbers_are_those_of_the_headers() {
    let structures = [info(), objects(), transfers()].into_iter().flatten().flatten();
    let questions: Vec<_> = structures.chain(constants()).collect();
    let answers = ask(&questions);
    assert_eq!(answers.len(), questions.len());
    for ((question, ours), theirs) in questions.into_iter().zip(answers) {
        assert_eq!(ours, theirs, "{question}");
    }
}
